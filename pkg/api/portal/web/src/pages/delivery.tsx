// One delivery: why it stands as it does, its attempts, and what was sent.
import { useState } from "preact/hooks";
import { api, ask, type Attempt } from "../api";
import { fullTime, milliseconds } from "../format";
import { aboutOf, listOf } from "../kinds";
import { useAction, useLoad } from "../load";
import { link, type Route } from "../route";
import { can, useMe, why } from "../session";
import { hand } from "../signature";
import { Copy, EndpointName, Facts, Failed, Id, Json, Loading, Notice, Page, Panel, Select, Status, Table, Time } from "../ui";
import { calledOf, curlOf, getDelivery, linesOf, reasonOf, shown, type Sent } from "../webhooks";

export function DeliveryPage({ path: [id = ""] }: Route) {
  const me = useMe();
  const [redelivered, setRedelivered] = useState(-1); // after so many attempts
  const { data: stored, error, reload } = useLoad((from) => getDelivery(id, from), [id], redelivered < 0 ? "live" : "soon");
  const endpoint = useLoad(async () => stored && calledOf(stored), [stored?.endpointId]).data;
  const redelivery = useAction();
  const redeliver = () =>
    redelivery.run(async () => {
      setRedelivered((await ask(api.POST("/developers/webhooks/events/{id}/redeliver", { params: { path: { id } } }))).attemptCount);
      reload();
    });
  if (!stored) return <Page title="Delivery">{error ? <Failed error={error} /> : <Loading />}</Page>;

  const deleted = endpoint?.deleted ?? false;
  const data = shown(stored, deleted);
  const underWay = data.status === "PENDING" && data.attemptCount === redelivered;
  const again = redelivered >= 0 && data.attemptCount > redelivered ? "It was sent again. " : "";
  const mayRedeliver = can(me, "webhooks:write") && data.status !== "PENDING" && !deleted;
  const object = data.objectId;
  const kind = listOf(aboutOf(data.type));
  return (
    <Page
      title={data.type}
      actions={
        mayRedeliver && (
          <button type="button" class="primary" disabled={redelivery.busy} onClick={redeliver}>
            Send again
          </button>
        )
      }
    >
      <Failed error={redelivery.error ?? error} />
      <Notice>
        <Status of={data.status} /> <span role="status">{underWay ? "An attempt is under way. How it ends shows here." : again + reasonOf(data)}</span>
      </Notice>
      <Panel title="About it">
        <Facts
          of={[
            ["Created", <Time at={data.createdAt} />],
            ["Next attempt", <Time at={data.nextAttemptAt} />],
            ["Endpoint", <EndpointName id={data.endpointId} {...endpoint} />],
            ["Event (webhook-id)", <Id value={data.eventId} what="the event's id" />],
            ["Delivery", <Id value={data.id} what="the delivery's id" />],
            [
              "Object",
              object ? (
                <>
                  {kind && can(me, `${kind}:read`) ? <a href={link(`records/${kind}/${object}`)}>{object}</a> : object}{" "}
                  <a href={link(`deliveries/trace/${object}`)}>What became of it</a>
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
      {data.attempts.some((a) => a.request) && <Exchange of={stored} />}
      <Panel title="Payload" actions={stored.body && <Copy text={stored.body} what="the payload" label="Copy payload" />}>{data.payload ? <Json of={data.payload} label="Payload" /> : <p class="empty">{(kind && why(me, `${kind}:read`)) || "It is no longer kept."}</p>}</Panel>
    </Page>
  );
}

// Exchange is what an attempt sent and what it was answered.
function Exchange({ of }: { of: Sent }) {
  const [chosen, choose] = useState("");
  const kept = of.attempts.filter((a) => a.request);
  const attempt = kept.find((a) => a.at === chosen) ?? kept.at(-1)!;
  const request = attempt.request!;
  const sent = linesOf(request.headers);
  const signed = sent.length > 0 && of.body !== "";
  return (
    <>
      {kept.length > 1 && <Select label="Attempt" value={attempt.at} onChange={choose} options={kept.map((a) => [a.at, fullTime(a.at)])} />}
      <div class="columns">
        <Panel
          title="What was sent"
          actions={
            <>
              {signed && request.url.startsWith("http") && <Copy text={curlOf(request, of.body)} what="the request" label="Copy as curl" />}
              {signed && <a href={link("signature")} onClick={() => hand({ headers: sent.join("\n"), body: of.body })}>Check the signature</a>}
            </>
          }
        >
          <pre tabIndex={0} role="region" aria-label="The request">{[request.url, ...sent].join("\n")}</pre>
        </Panel>
        <Panel title="What came back">
          <pre tabIndex={0} role="region" aria-label="The response">
            {[attempt.responseStatus ?? attempt.error, ...linesOf(attempt.responseHeaders ?? {}), "", attempt.responseBody ?? ""].join("\n").trim()}
          </pre>
        </Panel>
      </div>
    </>
  );
}
