// One delivery: why it stands as it does, its attempts, and what was sent.
import { useState } from "preact/hooks";
import { api, ask, type Attempt } from "../api";
import { milliseconds } from "../format";
import { listOf } from "../kinds";
import { useAction, useLoad } from "../load";
import { link, type Route } from "../route";
import { can, useMe, why } from "../session";
import { Facts, Failed, Id, Json, Loading, Notice, Page, Panel, Status, Table, Time } from "../ui";
import { findEndpoint, reasonOf, shown } from "../webhooks";

export function DeliveryPage({ path: [id = ""] }: Route) {
  const me = useMe();
  const { data: stored, error, reload } = useLoad(() => ask(api.GET("/developers/webhooks/events/{id}", { params: { path: { id } } })), [id], 2000);
  const endpoint = useLoad(async () => stored && findEndpoint(stored.endpointId), [stored?.endpointId]).data;
  const redelivery = useAction();
  const [redelivered, setRedelivered] = useState(-1); // after so many attempts
  const redeliver = () =>
    redelivery.run(async () => {
      setRedelivered((await ask(api.POST("/developers/webhooks/events/{id}/redeliver", { params: { path: { id } } }))).attemptCount);
      reload();
    });
  if (!stored) return <Page title="Delivery">{error ? <Failed error={error} /> : <Loading />}</Page>;

  const deleted = endpoint === null;
  const data = shown(stored, deleted);
  const underWay = data.status === "PENDING" && data.attemptCount === redelivered;
  const mayRedeliver = can(me, "webhooks:write") && data.status !== "PENDING" && !deleted;
  const object = (data.payload?.data.object ?? {}) as { id?: string };
  const kind = listOf(data.type.split(".")[0] ?? "");
  return (
    <Page
      title={data.type}
      actions={
        mayRedeliver && (
          <button type="button" class="primary" disabled={redelivery.busy} onClick={redeliver}>
            Redeliver
          </button>
        )
      }
    >
      <Failed error={redelivery.error ?? error} />
      <Notice>
        <Status of={data.status} /> <span role="status">{underWay ? "An attempt is under way. How it ends shows here." : reasonOf(data)}</span>
      </Notice>
      <Panel title="About it">
        <Facts
          of={[
            ["Created", <Time at={data.createdAt} />],
            ["Next attempt", <Time at={data.nextAttemptAt} />],
            ["Endpoint", deleted ? `${data.endpointId}, deleted` : <a href={link(`endpoints/${data.endpointId}`)}>{endpoint ? endpoint.description || endpoint.url : data.endpointId}</a>],
            ["Event (webhook-id)", <Id value={data.eventId} what="the event's id" />],
            ["Delivery", <Id value={data.id} what="the delivery's id" />],
            [
              "Object",
              object.id ? (
                <>
                  {kind ? <a href={link(`records/${kind}/${object.id}`)}>{object.id}</a> : object.id}{" "}
                  <a href={link(`deliveries/trace/${object.id}`)}>What became of it</a>
                </>
              ) : (
                "–"
              ),
            ],
            ["Elsewhere", <a href={link("deliveries", { eventId: data.eventId })}>The same event at every endpoint</a>],
          ]}
        />
      </Panel>
      <Panel title={data.attemptCount > data.attempts.length ? `The last ${data.attempts.length} of ${data.attemptCount} attempts` : "Attempts"}>
        <Table<Attempt>
          label="Attempts"
          rows={data.attempts}
          id={(a) => a.at}
          empty="None so far."
          columns={[
            { label: "Began", cell: (a) => <Time at={a.at} /> },
            { label: "Took", number: true, cell: (a) => milliseconds(a.durationMs) },
            { label: "Status", cell: (a) => a.responseStatus ?? "no response" },
            { label: "Why it failed", cell: (a) => a.error ?? "–" },
            { label: "Answer", cell: (a) => (a.responseBody ? <code class="answer">{a.responseBody}</code> : "–") },
          ]}
        />
      </Panel>
      <Panel title="Payload">{data.payload ? <Json of={data.payload} label="Payload" /> : <p class="empty">{(kind && why(me, `${kind}:read`)) || "It is no longer kept."}</p>}</Panel>
    </Page>
  );
}
