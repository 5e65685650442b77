// Who changed what: the audit trail of applications, keys and endpoints.
import { api, ask, type AuditEntry } from "../api";
import { csv, download } from "../csv";
import { count } from "../format";
import { useAction, useLoad } from "../load";
import { go, link, type Route } from "../route";
import { Failed, Input, Loading, Page, Table, Time } from "../ui";

// most bounds a download.
const most = 10_000;

interface Filter {
  actorId?: string;
  objectId?: string;
  from?: string;
  to?: string;
}

const fields: [name: keyof Filter, label: string, placeholder: string][] = [
  ["actorId", "By", "the id of a user or an application"],
  ["objectId", "Of", "the id of an application, a key or an endpoint"],
  ["from", "From", "2026-11-21"],
  ["to", "Before", "2026-11-22"],
];

const actor = (e: AuditEntry) => [e.actor.kind, e.actor.id].filter(Boolean).join(" ");

export function Audit({ query }: Route) {
  const filter: Filter = Object.fromEntries(fields.map(([name]) => [name, query.get(name) || undefined]));
  const before = query.get("before") || undefined;
  const { data, error } = useLoad(() => trail(filter, before), [query.toString()]);
  const saving = useAction();
  const filtered = (name: string, value: string) => go(link("audit", { ...Object.fromEntries(query), before: "", [name]: value.trim() }));
  return (
    <Page
      title="Who changed what"
      actions={
        <button type="button" disabled={saving.busy} onClick={() => saving.run(() => save(filter))}>
          Download as CSV
        </button>
      }
    >
      <p class="hint">
        The changes of 400 days. A download has the latest {count(most)} that the filters select.
      </p>
      <div class="filters">
        {fields.map(([name, label, placeholder]) => (
          <Input key={name} label={label} name={name} type="search" value={filter[name]} placeholder={placeholder} onChange={(value) => filtered(name, value)} />
        ))}
      </div>
      <Failed error={error ?? saving.error} />
      {data ? (
        <>
          <Table<AuditEntry>
            label="Changes"
            rows={data.data}
            id={(e) => e.id}
            empty={data.meta.next ? "None in this part of the trail; older ones may follow." : "None."}
            columns={[
              { label: "When", cell: (e) => <Time at={e.at} /> },
              { label: "What", cell: (e) => e.action },
              { label: "Fields", cell: (e) => e.fields.join(", ") || "–" },
              { label: "Of", cell: (e) => <code>{e.object.id}</code> },
              { label: "By", cell: actor },
              { label: "From", cell: (e) => e.address ?? "–" },
            ]}
          />
          <nav class="pager" aria-label="Pages">
            {before && <a href={link("audit", { ...Object.fromEntries(query), before: "" })}>The latest</a>}
            {data.meta.next && <a href={link("audit", { ...Object.fromEntries(query), before: data.meta.next })}>Older ones</a>}
          </nav>
        </>
      ) : (
        !error && <Loading />
      )}
    </Page>
  );
}

const trail = (filter: Filter, before?: string, limit?: number) => ask(api.GET("/developers/audit", { params: { query: { ...filter, before, limit } } }));

async function save(filter: Filter) {
  const rows = [["at", "action", "actor", "actorId", "address", "object", "objectId", "applicationId", "fields"]];
  let next: string | undefined;
  do {
    const page = await trail(filter, next, 100);
    for (const e of page.data) {
      rows.push([e.at, e.action, e.actor.kind, e.actor.id ?? "", e.address ?? "", e.object.kind, e.object.id, e.applicationId, e.fields.join(" ")]);
    }
    next = page.meta.next ?? undefined;
  } while (next && rows.length <= most);
  download("audit.csv", "text/csv;charset=utf-8", csv(rows));
}
