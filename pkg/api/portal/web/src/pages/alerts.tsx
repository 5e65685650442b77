// Where an application's alerts go: that endpoints fail, recover, are disabled.
import { useState } from "preact/hooks";
import { api, ask, type Match, type Once } from "../api";
import { textOf } from "../edit";
import { useLoad } from "../load";
import { link } from "../route";
import { can, useMe } from "../session";
import { Facts, Failed, FormDialog, Input, Loading, Panel, Shown, Status, valueOf } from "../ui";
import { getAlerts } from "../webhooks";

export function Alerts({ application }: { application: string }) {
  const me = useMe();
  const [opened, setOpened] = useState<"" | "set" | "remove">("");
  const [secret, setSecret] = useState("");
  const path = { params: { path: { id: application } } };
  const load = () => getAlerts(application);
  const { data: state, error, reload } = useLoad(load, [application]);
  const data = state?.body;
  const close = () => setOpened("");
  const set = async (fields: FormData, _: Once, match: Match) => {
    const alerts = await ask(api.PUT("/developers/applications/{id}/alerts", { ...path, headers: match, body: { url: valueOf(fields, "url") } }));
    if (!match["If-Match"]) setSecret(alerts.secret);
    reload();
  };
  const remove = async (_: FormData, __: Once, match: Match) => {
    await ask(api.DELETE("/developers/applications/{id}/alerts", { ...path, headers: match }));
    reload();
  };
  const edits = state && { state, load, values: (alerts: typeof state.body) => ({ url: alerts?.url ?? "" }) };
  return (
    <Panel
      title="Alerts"
      actions={
        data !== undefined &&
        can(me, "webhooks:write") && (
          <>
            <button type="button" onClick={() => setOpened("set")}>
              {data ? "Change the URL" : "Set a URL"}
            </button>
            {data && (
              <button type="button" class="danger" onClick={() => setOpened("remove")}>
                Send none
              </button>
            )}
          </>
        )
      }
    >
      <Failed error={error} />
      {data === undefined && !error && <Loading />}
      {data === null && <p class="empty">They go nowhere. A URL would hear when endpoints fail, recover or are disabled, and of events that failed for good.</p>}
      {data && (
        <Facts
          of={[
            ["URL", <span class="url">{data.url}</span>],
            ["State", <Status of={data.status} />],
            ["Signing secret", <code>{data.secret}</code>],
            ["History", <a href={link("deliveries", { endpointId: data.endpointId })}>Its alerts</a>],
          ]}
        />
      )}
      {opened === "set" && (
        <FormDialog title="Where alerts go" submit="Save" edits={edits} act={set} close={close}>
          {(values) => <Input label="URL" name="url" type="url" required maxLength={2048} value={textOf(values, "url")} />}
        </FormDialog>
      )}
      {opened === "remove" && (
        <FormDialog title="Send no alerts?" submit="Send none" danger edits={edits} act={remove} close={close}>
          <p>Alerts that wait are cancelled.</p>
        </FormDialog>
      )}
      {secret && <Shown title="The URL is set" secrets={[["Signing secret", secret]]} close={() => setSecret("")} />}
    </Panel>
  );
}
