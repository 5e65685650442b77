// Which events an endpoint gets, and how. Settings are tried on past events
// before they are saved.
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { api, ask, Refusal, tagged, type DeliveryPreview, type DeliverySettings, type PreviewedEvent, type Tagged } from "../api";
import { textOf, useEdit, type Values } from "../edit";
import { count } from "../format";
import { useAction, useLoad } from "../load";
import { link, type Route } from "../route";
import { can, useMe } from "../session";
import { Elsewhere, Failed, Field, Input, Loading, Page, Panel, Status, Table, TextArea, Time, valueOf, wrongIn } from "../ui";

const path = (id: string) => ({ params: { path: { id } } });

export function DeliverySettingsPage({ path: [id = ""] }: Route) {
  const load = () => tagged(api.GET("/developers/webhooks/endpoints/{id}/delivery", path(id)));
  const { data, error } = useLoad(() => Promise.all([ask(api.GET("/developers/webhooks/endpoints/{id}", path(id))), load()]), [id]);
  const title = "Delivery settings";
  if (!data) return <Page title={title}>{error ? <Failed error={error} /> : <Loading />}</Page>;
  return (
    <Page title={title} actions={<a href={link(`endpoints/${id}`)}>{data[0].description || data[0].url}</a>}>
      <Settings id={id} of={data[1]} load={load} />
    </Page>
  );
}

function Settings({ id, of, load }: { id: string; of: Tagged<DeliverySettings>; load: () => Promise<Tagged<DeliverySettings>> }) {
  const me = useMe();
  const [preview, setPreview] = useState<DeliveryPreview>();
  const [saved, setSaved] = useState(false);
  const action = useAction();
  const edit = useEdit({ state: of, load, values: valuesOf });

  const send = (form: HTMLFormElement, saves: boolean) =>
    action.run(async () => {
      setSaved(false);
      setPreview(undefined);
      if (!saves) return setPreview(await ask(api.POST("/developers/webhooks/endpoints/{id}/delivery/preview", { ...path(id), body: settingsOf(new FormData(form)) })));
      let settings: Tagged<DeliverySettings> | undefined;
      await edit.send(form, async (fields, match) => {
        settings = await tagged(api.PUT("/developers/webhooks/endpoints/{id}/delivery", { ...path(id), headers: match, body: settingsOf(fields) }));
      });
      if (!settings) return;
      edit.restart(settings);
      setSaved(true);
    });
  return (
    <>
      <form
        class="settings"
        onSubmit={(event) => {
          event.preventDefault();
          void send(event.currentTarget, (event.submitter as HTMLButtonElement).value === "save");
        }}
      >
        <Fragment key={edit.turn}>
          <Fields of={edit.values} error={action.error} />
          <Elsewhere of={edit.differences} />
        </Fragment>
        {!named.some((name) => wrongIn(action.error, name)) && <Failed error={action.error} />}
        <div class="actions">
          <button type="submit" value="try" disabled={action.busy}>
            Try on the last 100 events
          </button>
          {can(me, "webhooks:write") && (
            <button type="submit" value="save" class="primary" disabled={action.busy}>
              Save
            </button>
          )}
          <span role="status">{saved && "Saved: they hold for the events that are stored from now on."}</span>
        </div>
      </form>
      {preview && <Preview of={preview} />}
    </>
  );
}

// valuesOf are the settings as the form has them.
const valuesOf = (s: DeliverySettings): Values => ({
  filter: s.filter ? JSON.stringify(s.filter, null, 2) : "",
  changed: s.changed?.join(", ") ?? "",
  fields: s.fields?.join(", ") ?? "",
  payload: s.payload,
  headers: Object.entries(s.headers).map(([name, value]) => `${name}: ${value}`).join("\n"),
  retryCount: String(s.retryCount),
  timeoutSeconds: String(s.timeoutSeconds),
});

// named are the fields that say themselves what is wrong in them.
const named = ["filter", "changed", "fields", "payload", "headers", "retryCount", "timeoutSeconds"];

function Fields({ of, error }: { of: Values; error?: Error }) {
  const names = { type: "text", autoComplete: "off" } as const;
  const input = (name: string) => ({ name, value: textOf(of, name), wrong: wrongIn(error, name) });
  return (
    <Fragment>
      <TextArea
        label="Filter"
        {...input("filter")}
        rows={8}
        placeholder='{"object": {"total": [{"numeric": [">", 100]}]}}'
        hint="A pattern in EventBridge's language over object, previousAttributes and siteId. Empty: every event."
      />
      <div class="filters">
        <Input {...names} label="Only if changed" {...input("changed")} placeholder="status, total" hint="Fields, comma-separated, of which one must have changed. Creations and deletions pass." />
        <Input {...names} label="Only these fields" {...input("fields")} placeholder="orderNumber, status" hint="Comma-separated; the object is sent with these. Empty: with all." />
        <Field label="Payload" wrong={wrongIn(error, "payload")} hint="thin: only id and updatedAt.">
          {(attributes) => (
            <select {...attributes} name="payload">
              {["full", "thin"].map((form) => (
                <option key={form} selected={form === of.payload}>
                  {form}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Input label="Retries" {...input("retryCount")} type="number" min={0} max={10} required hint="0 to 10." />
        <Input label="Timeout in seconds" {...input("timeoutSeconds")} type="number" min={1} max={30} required hint="1 to 30." />
      </div>
      <TextArea
        label="Headers"
        {...input("headers")}
        rows={3}
        placeholder="Authorization: Bearer …"
        hint="One a line, sent with every attempt. Values are not shown again; **** keeps the one that is stored."
      />
    </Fragment>
  );
}

// settingsOf are the settings that the form has. What is empty is absent.
function settingsOf(fields: FormData) {
  const names = (name: string) => {
    const all = valueOf(fields, name).split(",").map((text) => text.trim()).filter(Boolean);
    return all.length > 0 ? { [name]: all } : {};
  };
  const lines = valueOf(fields, "headers").split("\n").filter((line) => line.trim() !== "");
  const headers = Object.fromEntries(lines.map((line) => [line.split(":")[0]!.trim(), line.slice(line.indexOf(":") + 1 || line.length).trim()]));
  if (Object.keys(headers).length < lines.length) {
    throw wrong("headers", "must have each name once");
  }
  return {
    ...filterOf(valueOf(fields, "filter")),
    ...names("changed"),
    ...names("fields"),
    payload: valueOf(fields, "payload") as "full" | "thin",
    headers,
    retryCount: Number(valueOf(fields, "retryCount")),
    timeoutSeconds: Number(valueOf(fields, "timeoutSeconds")),
  };
}

function filterOf(text: string) {
  if (text === "") return {};
  try {
    return { filter: JSON.parse(text) as NonNullable<DeliverySettings["filter"]> };
  } catch (why) {
    throw wrong("filter", `is no JSON: ${(why as Error).message}`);
  }
}

const wrong = (field: string, message: string) => new Refusal(400, { message: `${field} ${message}`, details: [{ field, in: "body", code: "invalid", message }] });

function Preview({ of }: { of: DeliveryPreview }) {
  return (
    <Panel title="The last events" actions={<span role="status">{`${count(of.passedCount)} of ${count(of.data.length)} pass`}</span>}>
      <Table<PreviewedEvent>
        label="The last events"
        rows={of.data}
        id={(e) => e.eventId}
        empty="The history has no event of the types that the endpoint subscribes to."
        columns={[
          { label: "Stored", cell: (e) => <Time at={e.timestamp} /> },
          { label: "Type", cell: (e) => <a href={link("deliveries", { eventId: e.eventId })}>{e.type}</a> },
          { label: "Object", cell: (e) => (e.objectId ? <a href={link(`deliveries/trace/${e.objectId}`)}>{e.objectId}</a> : "–") },
          { label: "Outcome", cell: (e) => <Status of={e.passes ? "PASSES" : "FILTERED"} /> },
          { label: "Why", cell: (e) => e.reason ?? "–" },
        ]}
      />
    </Panel>
  );
}
