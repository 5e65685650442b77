// What changes, as it does: the feed of changes from the moment the page is
// opened.
import { useRef, useState } from "preact/hooks";
import { ask, type Change } from "../api";
import { title } from "../format";
import { kinds, listOf, type Kind } from "../kinds";
import { useLoad } from "../load";
import { go, link, type Route } from "../route";
import { can, useMe } from "../session";
import { Failed, Loading, Notice, Page, Select, Status, Table, Time } from "../ui";
import { nameOfRecord } from "./records";

const most = 100; // that are shown

export function Changes({ query }: Route) {
  const me = useMe();
  const kind = query.get("kind") ?? "";
  const readable = Object.entries(kinds).flatMap(([kind, list]) => (can(me, `${list}:read`) ? [kind] : []));
  return (
    <Page title="Changes">
      {readable.length === 0 ? (
        <Notice>Your credential reads no records.</Notice>
      ) : (
        <>
          <Select label="Kind" value={kind} onChange={(to) => go(link("changes", { kind: to }))} options={[["", "every kind"], ...readable.map((k): [string, string] => [k, title(k.toUpperCase())])]} />
          <Feed key={kind} kind={kind} />
        </>
      )}
    </Page>
  );
}

function Feed({ kind }: { kind: string }) {
  const cursor = useRef("now");
  const [seen, setSeen] = useState<Change[]>([]);
  const { data, error } = useLoad(
    async (from) => {
      const page = await ask(from.GET("/api/changes", { params: { query: { after: cursor.current, kinds: kind ? [kind as Kind] : undefined } } }));
      cursor.current = page.meta.next;
      const newest = page.data.sort((a, b) => b.changedAt.localeCompare(a.changedAt));
      setSeen((before) => [...newest, ...before].slice(0, most));
      return page.meta;
    },
    [],
    "live",
  );
  if (!data) return error ? <Failed error={error} /> : <Loading />;
  return (
    <>
      <Failed error={error} />
      <Table<Change>
        label="Changes"
        rows={seen}
        id={(c) => `${c.kind} ${c.id} ${c.changedAt}`}
        empty="Nothing has changed since this page was opened. What changes from now on shows here."
        columns={[
          { label: "Changed", cell: (c) => <Time at={c.changedAt} /> },
          { label: "Kind", cell: (c) => title(c.kind.toUpperCase()) },
          { label: "Change", cell: (c) => <Status of={c.op === "delete" ? "DELETED" : "STORED"} /> },
          { label: "Record", cell: (c) => (c.object ? <a href={link(`records/${listOf(c.kind)}/${c.id}`)}>{nameOfRecord(listOf(c.kind) ?? "", { ...c.object, id: c.id })}</a> : <code>{c.id}</code>) },
        ]}
      />
    </>
  );
}
