// The log of deliveries, live.
import { useState } from "preact/hooks";
import { api, ask, type Delivery, type Me } from "../api";
import { short, title } from "../format";
import { aboutOf } from "../kinds";
import { useLoad } from "../load";
import { go, link, type Route } from "../route";
import { can, useMe } from "../session";
import { EndpointName, Failed, Input, Loading, Page, Pager, Select, Status, Table, Time } from "../ui";
import { calledOf, groupsOf, listEndpoints, listEventTypes, nameOf, shown, type Called } from "../webhooks";

const states = ["PENDING", "DELIVERED", "FAILED", "HELD", "CANCELLED"] as const;
const filters = ["objectId", "type", "status", "endpointId", "eventId", "hours"] as const;

export function Deliveries({ query }: Route) {
  const me = useMe();
  const [follows, setFollows] = useState(true);
  const page = Number(query.get("page") ?? 1);
  const given = Object.fromEntries(filters.map((name) => [name, query.get(name) ?? ""])) as Record<(typeof filters)[number], string>;
  const show = (change: Record<string, string>) => go(link("deliveries", { ...given, ...change }));
  const [wrong, setWrong] = useState(""); // with what was typed as the object
  const find = async (text: string) => {
    const objectId = await objectOf(me, text);
    setWrong(objectId === undefined ? `No order, product, invoice or customer has the number “${text}”.` : "");
    if (objectId !== undefined) show({ objectId });
  };

  const choices = useLoad(() => Promise.all([listEndpoints(), listEventTypes()]), []);
  const [endpoints = [], types = []] = choices.data ?? [];
  const { data, error, reload } = useLoad(
    (from) => ask(from.GET("/developers/webhooks/events", { params: { query: { ...wanted(given), page, limit: 20 } } })),
    [query.toString()],
    follows ? "live" : "",
  );
  // The list of endpoints lacks alert URLs and those that were deleted: their deliveries know more.
  const unlisted = choices.data ? (data?.data ?? []).filter((d) => !endpoints.some((e) => e.id === d.endpointId)) : [];
  const attempted = new Map(unlisted.sort((a, b) => a.attemptCount - b.attemptCount).map((d) => [d.endpointId, d]));
  const found = useLoad(
    async () => new Map(await Promise.all([...attempted].map(async ([id, d]) => [id, await calledOf(d)] as const))),
    [[...attempted.keys()].sort().join()],
  ).data;
  const called = (id: string): Called => found?.get(id) ?? { name: nameOf(endpoints, id), deleted: false };

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
          wrong={wrong}
          placeholder="order number, SKU, id …"
          onChange={(text) => find(text.trim())}
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
          options={[...new Set(["", ...endpoints.map((e) => e.id), given.endpointId])].map((id) => [id, id ? (called(id).name ?? short(id)) : "every endpoint"])}
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
      {data && !wrong ? (
        <>
          <Table<Delivery>
            label="Deliveries"
            rows={data.data}
            id={(d) => d.id}
            empty={query.toString() ? "No delivery matches." : "There is no delivery yet. An endpoint receives the events that are stored after it was created."}
            columns={[
              { label: "Created", cell: (d) => <Time at={d.createdAt} /> },
              { label: "Type", cell: (d) => <a class="whole" href={link(`deliveries/${d.id}`)}>{d.type}</a> },
              { label: "Object", cell: (d) => <About of={d} /> },
              { label: "State", cell: (d) => <Status of={shown(d, called(d.endpointId).deleted).status} /> },
              { label: "Attempts", number: true, cell: (d) => d.attemptCount },
              { label: "Last answer", cell: (d) => d.attempts.at(-1)?.responseStatus ?? d.attempts.at(-1)?.error ?? "–" },
              { label: "Endpoint", cell: (d) => <EndpointName id={d.endpointId} {...called(d.endpointId)} /> },
            ]}
          />
          <Pager meta={data.meta} go={(page) => show({ page: String(page) })} />
        </>
      ) : (
        !error && !wrong && <Loading />
      )}
    </Page>
  );
}

// About is the object that an event is about, which leads to what became of it.
function About({ of: { objectId, type } }: { of: Delivery }) {
  if (!objectId) return <>–</>;
  return (
    <a class="whole" href={link(`deliveries/trace/${objectId}`)} title={objectId}>
      {title(aboutOf(type).toUpperCase())} {short(objectId)}
    </a>
  );
}

// objectOf is the id of the record that people call by the text, or the text itself when it
// is an id. Where several have one number it is the latest.
async function objectOf(me: Me, text: string): Promise<string | undefined> {
  if (text === "" || /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text)) return text;
  const named = { orders: "orderNumber", products: "sku", invoices: "invoiceNumber", customers: "customerNumber" };
  for (const [kind, field] of Object.entries(named)) {
    if (!can(me, `${kind}:read`)) continue;
    const found = await ask(api.GET(`/api/${kind as "orders"}`, { params: { query: { [field]: text, limit: 1 } } })).catch(() => undefined);
    if (found?.data[0]) return found.data[0].id;
  }
  return undefined;
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
