// The log of deliveries, live.
import { useState } from "preact/hooks";
import { api, ask, type Delivery, type Me } from "../api";
import { title } from "../format";
import { useLoad } from "../load";
import { go, link, type Route } from "../route";
import { can, useMe } from "../session";
import { Failed, Input, Loading, Page, Pager, Select, Status, Table, Time } from "../ui";
import { findEndpoint, groupsOf, listEndpoints, listEventTypes, nameOf, shown } from "../webhooks";

const states = ["PENDING", "DELIVERED", "FAILED", "HELD", "CANCELLED"] as const;
const filters = ["objectId", "type", "status", "endpointId", "eventId", "hours"] as const;

export function Deliveries({ query }: Route) {
  const me = useMe();
  const [follows, setFollows] = useState(true);
  const page = Number(query.get("page") ?? 1);
  const given = Object.fromEntries(filters.map((name) => [name, query.get(name) ?? ""])) as Record<(typeof filters)[number], string>;
  const show = (change: Record<string, string>) => go(link("deliveries", { ...given, ...change }));

  const choices = useLoad(() => Promise.all([listEndpoints(), listEventTypes()]), []);
  const [endpoints = [], types = []] = choices.data ?? [];
  const { data, error, reload } = useLoad(
    (from) => ask(from.GET("/developers/webhooks/events", { params: { query: { ...wanted(given), page, limit: 20 } } })),
    [query.toString()],
    follows ? "live" : "",
  );
  // The list of endpoints lacks those that were deleted, and alert URLs.
  const unlisted = choices.data ? [...new Set(data?.data.map((d) => d.endpointId))].filter((id) => !endpoints.some((e) => e.id === id)) : [];
  const found = useLoad(async () => new Map(await Promise.all(unlisted.map(async (id) => [id, await findEndpoint(id)] as const))), [unlisted.join()]).data;
  const deleted = (d: Delivery) => found?.get(d.endpointId) === null;
  const known = [...endpoints, ...(found?.values() ?? [])].filter((e) => e !== null);

  return (
    <Page
      title="Deliveries"
      actions={
        <label class="check">
          <input type="checkbox" checked={follows} onChange={(e) => setFollows(e.currentTarget.checked)} /> Live
        </label>
      }
    >
      <form class="filters" role="search" aria-label="Deliveries" onSubmit={(e) => e.preventDefault()}>
        <Input
          key={given.objectId}
          label="Object"
          name="objectId"
          value={given.objectId}
          placeholder="order number, SKU, id …"
          onChange={async (text) => show({ objectId: await objectOf(me, text.trim()) })}
        />
        <Select
          label="Type"
          value={given.type}
          onChange={(type) => show({ type })}
          options={[["", "every type"], ...[...groupsOf(types), ...types.map((t) => t.type)].map((t): [string, string] => [t, t])]}
        />
        <Select label="State" value={given.status} onChange={(status) => show({ status })} options={[["", "every state"], ...states.map((s): [string, string] => [s, title(s)])]} />
        <Select
          label="Endpoint"
          value={given.endpointId}
          onChange={(endpointId) => show({ endpointId })}
          options={[["", "every endpoint"], ...endpoints.map((e): [string, string] => [e.id, e.description || e.url])]}
        />
        <Select label="Created" value={given.hours} onChange={(hours) => show({ hours })} options={[["", "at any time"], ["1", "in the last hour"], ["24", "in the last day"], ["168", "in the last week"]]} />
      </form>
      {given.objectId && (
        <p class="hint">
          <a href={link(`deliveries/trace/${given.objectId}`)}>What became of this object</a> tells also who got nothing, and why.
        </p>
      )}
      {given.eventId && (
        <p class="hint">
          Only deliveries of the event <code>{given.eventId}</code>. <a href={link("deliveries")}>Show all</a>
        </p>
      )}
      <Failed error={error ?? choices.error} retry={error ? reload : choices.reload} />
      {data ? (
        <>
          <Table<Delivery>
            label="Deliveries"
            rows={data.data}
            id={(d) => d.id}
            empty={query.toString() ? "No delivery matches." : "There is no delivery yet. An endpoint receives the events that are stored after it was created."}
            columns={[
              { label: "Created", cell: (d) => <Time at={d.createdAt} /> },
              { label: "Type", cell: (d) => <a href={link(`deliveries/${d.id}`)}>{d.type}</a> },
              { label: "State", cell: (d) => <Status of={shown(d, deleted(d)).status} /> },
              { label: "Attempts", number: true, cell: (d) => d.attemptCount },
              { label: "Last answer", cell: (d) => d.attempts.at(-1)?.responseStatus ?? d.attempts.at(-1)?.error ?? "–" },
              { label: "Endpoint", cell: (d) => (deleted(d) ? "deleted" : nameOf(known, d.endpointId)) },
            ]}
          />
          <Pager meta={data.meta} go={(page) => show({ page: String(page) })} />
        </>
      ) : (
        !error && <Loading />
      )}
    </Page>
  );
}

// objectOf is the id of the record that people call by the text; the text itself
// when it is an id, or when no record that the credential reads is called so.
async function objectOf(me: Me, text: string): Promise<string> {
  if (text === "" || /^[\da-f]{8}-/i.test(text)) return text;
  const named = { orders: "orderNumber", products: "sku", invoices: "invoiceNumber", customers: "customerNumber" };
  for (const [kind, field] of Object.entries(named)) {
    if (!can(me, `${kind}:read`)) continue;
    const found = await ask(api.GET(`/api/${kind as "orders"}`, { params: { query: { [field]: text, limit: 1 } } })).catch(() => undefined);
    if (found?.data[0]) return found.data[0].id;
  }
  return text;
}

// wanted are the filters as the API takes them.
function wanted(given: Record<string, string>) {
  return {
    objectId: given.objectId || undefined,
    eventId: given.eventId || undefined,
    endpointId: given.endpointId || undefined,
    type: given.type ? [given.type as "order.*"] : undefined,
    status: given.status ? [given.status as "FAILED"] : undefined,
    createdFrom: given.hours ? new Date(Date.now() - Number(given.hours) * 3_600_000).toISOString() : undefined,
  };
}
