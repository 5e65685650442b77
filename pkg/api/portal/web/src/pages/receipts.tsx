// What became of records that were posted or sent to the queue: the receipts, each
// with what was refused and why.
import { useState } from "preact/hooks";
import { api, ask, type Once, type Receipt, type Refused } from "../api";
import { count } from "../format";
import { useLoad } from "../load";
import { go, link, type Route } from "../route";
import { Facts, Failed, FormDialog, Id, Input, Loading, Notice, Page, Panel, Status, Table, TextArea, Time, valueOf } from "../ui";

const from = (r: Receipt) => (r.source === "QUEUE" ? "Queue" : r.source === "POSTED" ? "HTTP" : (r.topic ?? r.source));

// State is how a receipt stands, the same wherever it shows.
export function State({ of: r }: { of: Receipt }) {
  if (r.status !== "COMPLETED" || r.refusedCount === 0) return <Status of={r.status} />;
  return <Status of={r.refusedCount < r.recordCount ? "PARTLY_REFUSED" : "REFUSED"} />;
}

export function Receipts({ query }: Route) {
  const [posts, setPosts] = useState(false);
  const before = query.get("before") || undefined;
  const { data, error } = useLoad((from) => ask(from.GET("/ingest/receipts", { params: { query: { before } } })), [before], before ? "" : "live");
  return (
    <Page
      title="Received records"
      actions={
        <>
          <a href={link("import")}>Import a file</a>
          <button type="button" class="primary" onClick={() => setPosts(true)}>
            Post records
          </button>
        </>
      }
    >
      <p class="hint">
        Records that were posted over HTTP, or came in webhooks of sources, within 7 days, and messages from the queue of which records were refused. What is no JSON, names
        no organization or has a wrong signature only the service's operator sees, by <code>commerce rejects</code>.
      </p>
      <Input label="Receipt" name="id" placeholder="the id of a receipt" onChange={(id) => id.trim() && go(link(`posted/${id.trim()}`))} />
      <Failed error={error} />
      {data ? (
        <>
          <Table<Receipt>
            label="Receipts"
            rows={data.data}
            id={(r) => r.id}
            empty={before || data.meta.next ? "None here." : "No records were posted within 7 days, and none refused."}
            columns={[
              { label: "Received", cell: (r) => <a href={link(`posted/${r.id}`)}><Time at={r.createdAt} /></a> },
              { label: "From", cell: from },
              { label: "State", cell: (r) => <State of={r} /> },
              { label: "Records", number: true, cell: (r) => count(r.recordCount) },
              { label: "Refused", number: true, cell: (r) => count(r.refusedCount) },
              { label: "The first reason", cell: (r) => r.refusals[0]?.message ?? "–" },
            ]}
          />
          <nav class="pager" aria-label="Pages">
            {before && <a href={link("posted")}>The latest</a>}
            {data.meta.next && <a href={link("posted", { before: data.meta.next })}>Older ones</a>}
          </nav>
        </>
      ) : (
        !error && <Loading />
      )}
      {posts && <Post close={() => setPosts(false)} />}
    </Page>
  );
}

const example = `{"records": [
  {"kind": "product", "op": "put",
   "record": {"id": "0192f0c2-6f81-7a55-8e8a-95d4e6f7a8b9", "name": "Sencha 100 g"}}
]}`;

function Post({ close }: { close: () => void }) {
  const post = async (fields: FormData, header: Once) => {
    // The text goes out as it is: its numbers may be such as JavaScript cannot hold.
    const receipt = await ask(api.POST("/ingest/records", { params: { header }, body: { records: [] }, bodySerializer: () => valueOf(fields, "body") }));
    go(link(`posted/${receipt.id}`));
  };
  return (
    <FormDialog title="Post records" submit="Post" act={post} close={close}>
      <TextArea label="The body of POST /ingest/records" name="body" rows={12} required value={example} hint="JSON: 1 to 500 changes. They take effect at once." />
    </FormDialog>
  );
}

export function ReceiptPage({ path: [id = ""] }: Route) {
  const [pending, setPending] = useState(true);
  const { data, error } = useLoad(
    async (from) => {
      const now: Receipt = await ask(from.GET("/ingest/receipts/{id}", { params: { path: { id } } }));
      setPending(now.status === "PENDING");
      return now;
    },
    [id],
    pending ? "soon" : "",
  );
  return (
    <Page title="Receipt" actions={<a href={link("posted")}>All receipts</a>}>
      <Failed error={error} />
      {data ? <Of receipt={data} /> : !error && <Loading />}
    </Page>
  );
}

function Of({ receipt: r }: { receipt: Receipt }) {
  return (
    <>
      {r.status === "PENDING" && <Notice>The records wait, for seconds as a rule. If it takes minutes, the request broke off or the service's operator is needed: to post them again is safe.</Notice>}
      <Panel title="About it">
        <Facts
          of={[
            ["State", <State of={r} />],
            ["Records", `${count(r.recordCount)}: ${count(r.acceptedCount)} accepted, ${count(r.refusedCount)} refused`],
            ["From", from(r)],
            ["Received", <Time at={r.createdAt} />],
            ["Finished", <Time at={r.completedAt} />],
            ["Can be read until", <Time at={r.expiresAt} />],
            ["Receipt", <Id value={r.id} what="the receipt's id" />],
          ]}
        />
      </Panel>
      {r.refusedCount > 0 && (
        <Panel title="Refused records">
          <Table<Refused>
            label="Refused records"
            rows={r.refusals}
            id={(refused) => `${refused.position} ${refused.field}`}
            empty=""
            columns={[
              { label: "Position", number: true, cell: (refused) => refused.position },
              { label: "Record", cell: (refused) => [refused.kind, refused.recordId].filter(Boolean).join(" ") || "–" },
              { label: "Field", cell: (refused) => <code>{refused.field}</code> },
              { label: "Why", cell: (refused) => refused.message },
              { label: "Code", cell: (refused) => <code>{refused.code}</code> },
            ]}
          />
          {r.refusedCount > r.refusals.length && <p class="hint">The first {r.refusals.length} are shown.</p>}
        </Panel>
      )}
    </>
  );
}
