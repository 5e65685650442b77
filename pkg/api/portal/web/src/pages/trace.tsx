// What became of an object's changes: which endpoint got each event, or why not.
import { ask, type Endpoint, type Trace, type TracedEndpoint } from "../api";
import { title } from "../format";
import { listOf } from "../kinds";
import { useLoad } from "../load";
import { link, type Route } from "../route";
import { can, useMe } from "../session";
import { EndpointName, Failed, Loading, Notice, Page, Panel, Status, Table, Time } from "../ui";
import { listEndpoints, nameOf, reasonOf, shown } from "../webhooks";

export function TracePage({ path: [, id = ""] }: Route) {
  const { data, error } = useLoad((from) => ask(from.GET("/developers/webhooks/trace/{objectId}", { params: { path: { objectId: id } } })), [id], "live");
  const endpoints = useLoad(listEndpoints, []);
  return (
    <Page title="What became of it" actions={<a href={link("deliveries", { objectId: id })}>Its deliveries</a>}>
      <p>
        The object <code>{id}</code>
      </p>
      <Failed error={error ?? endpoints.error} />
      {data && endpoints.data ? <Events trace={data} endpoints={endpoints.data} /> : !error && <Loading />}
    </Page>
  );
}

const silences: Record<string, string> = {
  SILENT: "Its last change made no event: the sender asked for none.",
  RECENT: "Its last change was stored less than a minute ago; its events may be on their way.",
  EXPIRED: "Its last change is older than the history.",
  NOT_SUBSCRIBED: "No endpoint wanted an event of its last change.",
};

function Events({ trace, endpoints }: { trace: Trace; endpoints: Endpoint[] }) {
  const { record } = trace;
  return (
    <>
      {record && (
        <Notice>
          <RecordLink kind={record.kind} id={trace.objectId} deleted={record.deleted} />, {record.deleted ? "deleted" : "changed"} <Time at={record.updatedAt} />. {record.noEvents && (silences[record.noEvents] ?? record.noEvents)}
        </Notice>
      )}
      {trace.events.map((event) => (
        <Panel key={event.eventId} title={event.type} actions={<Time at={event.createdAt} />}>
          <Table<TracedEndpoint>
            label={`Endpoints of ${event.type}, ${event.createdAt}`}
            rows={event.endpoints}
            id={(e) => e.endpointId}
            empty="There is no endpoint."
            columns={[
              { label: "Endpoint", cell: (e) => <EndpointName id={e.endpointId} name={nameOf(endpoints, e.endpointId)} deleted={e.deleted} /> },
              { label: "Outcome", cell: (e) => <Outcome of={e} /> },
              { label: "Why", cell: (e) => (e.entry ? reasonOf(shown(e.entry, e.deleted)) : (e.reason ?? absences[e.outcome] ?? "–")) },
            ]}
          />
        </Panel>
      ))}
      {trace.more && <p class="hint">The history has older events of it, which are left out here.</p>}
    </>
  );
}

// Outcome leads to the delivery, or to the settings that filtered the event.
function Outcome({ of: e }: { of: TracedEndpoint }) {
  const status = <Status of={e.entry ? shown(e.entry, e.deleted).status : e.outcome} />;
  if (e.entry) return <a href={link(`deliveries/${e.entry.id}`)}>{status}</a>;
  return e.outcome === "FILTERED" ? <a href={link(`endpoints/${e.endpointId}/delivery`)}>{status}</a> : status;
}

// RecordLink is the record's kind, which leads to it as long as it is there, for who reads it.
function RecordLink({ kind, id, deleted }: { kind: string; id: string; deleted: boolean }) {
  const me = useMe();
  const name = title(kind.toUpperCase());
  return deleted || !can(me, `${listOf(kind)}:read`) ? <>{name}</> : <a href={link(`records/${listOf(kind)}/${id}`)}>{name}</a>;
}

const absences: Record<string, string> = {
  CREATED_LATER: "The endpoint was created after the event.",
  NOT_SUBSCRIBED: "The endpoint does not subscribe to the type.",
  CHANGED_SINCE: "The endpoint takes the event now and did not then, or the delivery is too new to be listed.",
};
