// A CSV file of records: what it gives and what is refused of it, before anything is
// sent; then the import. The service reads the file, so that there is one mapping.
import { useState } from "preact/hooks";
import { api, ask, once, type FileRecords, type Once, type Receipt } from "../api";
import { csv, download } from "../csv";
import { count } from "../format";
import { kinds, type Kind } from "../kinds";
import { useAction } from "../load";
import { link } from "../route";
import { Failed, Field, Input, Json, Notice, Page, Panel, Select, Table } from "../ui";

const mostFile = 3 << 20; // bytes of the request that carries it
const mostRecords = 500; // of a request
const mostBytes = 240 << 10; // of their text
const shown = 20;

// Found is what the service read of a file.
interface Found {
  name: string;
  of: FileRecords; // of all parts together
  rows: number;
}

interface Post {
  records: string[];
  header: Once;
  receipt?: Receipt;
}

// textOf decodes a file: what is not UTF-8 was written by a spreadsheet on Windows.
async function textOf(file: File) {
  const bytes = await file.arrayBuffer();
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

// read has the service read the file part by part.
async function read(file: File, options: { kind?: Kind; currency?: string; events: boolean }, told: (rows: number) => void): Promise<Found> {
  const fixed = { content: await textOf(file), ...options };
  if (new Blob([JSON.stringify(fixed)]).size + 32 > mostFile) throw new Error("The file has more than 3 MiB: import it with the program commerce, or divide it.");
  let all: FileRecords | undefined;
  for (let skip: number | null = 0; skip !== null; ) {
    const part: FileRecords = await ask(api.POST("/ingest/files", { body: { ...fixed, skip } }));
    all = !all ? part : {
      ...part,
      records: [...all.records, ...part.records],
      refusals: [...all.refusals, ...part.refusals],
      warnings: [...new Set([...all.warnings, ...part.warnings])],
    };
    skip = part.next;
    told(all.records.length + all.refusals.length);
  }
  return { name: file.name, of: all!, rows: all!.records.length + all!.refusals.length };
}

// postsOf divides the records into requests. Each has its key, so that one that is sent again changes nothing.
function postsOf(records: string[]): Post[] {
  const posts: Post[] = [];
  let size = 0;
  for (const record of records) {
    const bytes = new Blob([record]).size + 1;
    const last = posts.at(-1);
    if (last && last.records.length < mostRecords && size + bytes <= mostBytes) {
      last.records.push(record);
      size += bytes;
    } else {
      posts.push({ records: [record], header: once() });
      size = bytes;
    }
  }
  return posts;
}

const send = ({ records, header }: Post): Promise<Receipt> =>
  ask(api.POST("/ingest/records", { params: { header }, body: { records: [] }, bodySerializer: () => `{"records":[${records.join(",")}]}` }));

// saveRefused downloads the refused rows with the reason in a further column, which an import leaves out.
function saveRefused({ name, of }: Found) {
  const header = of.header.filter((column) => column !== "refused");
  const kept = (row: string[]) => row.filter((_, i) => of.header[i] !== "refused");
  const rows = of.refusals.flatMap((bad) => bad.rows.map((row, i) => [...kept(row), i === 0 ? `${bad.field} ${bad.message}`.trim() : ""]));
  download(name.replace(/(\.\w+)?$/, "-refused.csv"), "text/csv;charset=utf-8", csv([[...header, "refused"], ...rows]));
}

export function ImportFile() {
  const [kind, setKind] = useState("");
  const [currency, setCurrency] = useState("");
  const [events, setEvents] = useState(false);
  const [rows, setRows] = useState(0);
  const [found, setFound] = useState<Found>();
  const reading = useAction();
  const take = (file: File | undefined) => {
    setFound(undefined);
    setRows(0);
    if (!file) return;
    const options = { kind: (kind || undefined) as Kind | undefined, currency: currency || undefined, events };
    void reading.run(async () => setFound(await read(file, options, setRows)));
  };
  return (
    <Page title="Import a file" actions={<a href={link("posted")}>Received records</a>}>
      <p class="hint">
        A CSV file of at most 3 MiB: what Shopify, WooCommerce, Medusa or Vendure export, or columns that are named as the fields. You see
        what it gives before anything is sent. The program <code>commerce</code> imports larger files, and those with a mapping.
      </p>
      <Select label="What the rows are" value={kind} onChange={setKind} options={[["", "An export of a shop system"], ...Object.keys(kinds).map((k): [string, string] => [k, k])]} />
      <Input label="Currency" name="currency" placeholder="EUR" maxLength={3} onChange={setCurrency} hint="Of a file with prices in several." />
      <label class="check">
        <input type="checkbox" checked={events} onChange={(e) => setEvents(e.currentTarget.checked)} /> Emit events for the records
      </label>
      <Field label="File">
        {(attributes) => <input {...attributes} type="file" accept=".csv,.tsv,.txt,text/csv" disabled={reading.busy} onChange={(e) => take(e.currentTarget.files?.[0])} />}
      </Field>
      {reading.busy && <p role="status">Read {count(rows)} rows …</p>}
      <Failed error={reading.error} />
      {found && <Preview key={found.name} found={found} />}
    </Page>
  );
}

function Preview({ found }: { found: Found }) {
  const { records, refusals, warnings, notImported } = found.of;
  return (
    <>
      <Panel title="What it gives">
        <p>{`${found.name}, ${found.of.format}: ${count(records.length)} records, ${count(refusals.length)} refused.`}</p>
        {records.slice(0, 5).map((record) => (
          <Json key={record} of={JSON.parse(record)} label="A record" />
        ))}
        {records.length > 5 && <p class="hint">The first 5 are shown.</p>}
        {warnings.map((warning) => <p key={warning} class="hint">{warning}</p>)}
        {notImported.length > 0 && <p>Columns that come into no record: {notImported.join(", ")}.</p>}
      </Panel>
      {refusals.length > 0 && (
        <Panel title="Refused rows" actions={<button type="button" onClick={() => saveRefused(found)}>Download refused rows</button>}>
          <Table
            label="Refused rows"
            rows={refusals.slice(0, shown)}
            id={(bad) => `${bad.line} ${bad.field}`}
            empty=""
            columns={[
              { label: "Line", number: true, cell: (bad) => bad.line },
              { label: "Field", cell: (bad) => <code>{bad.field}</code> },
              { label: "Why", cell: (bad) => bad.message },
            ]}
          />
          {refusals.length > shown && <p class="hint">The first {shown} are shown; the file has all that can be read as CSV.</p>}
        </Panel>
      )}
      {records.length > 0 && <Sending records={records} />}
    </>
  );
}

// Sending posts the records, and goes on after a failure with the request that failed.
function Sending({ records }: { records: string[] }) {
  const [posts] = useState(() => postsOf(records));
  const [, setSent] = useState(0);
  const { busy, error, run } = useAction();
  const done = posts.filter((post) => post.receipt);
  const sent = done.reduce((sum, post) => sum + post.records.length, 0);
  const go = () =>
    run(async () => {
      for (const post of posts.filter((p) => !p.receipt)) {
        post.receipt = await send(post);
        setSent((n) => n + 1);
      }
    });
  return (
    <Panel title="Import">
      {done.length > 0 && <progress aria-label="Import" value={sent} max={records.length} />}
      {done.length > 0 && <p role="status">{`${count(sent)} of ${count(records.length)} records are sent.`}</p>}
      <Failed error={error} />
      {done.length < posts.length ? (
        <>
          {(busy || error) && <Notice>If you leave this page, what is sent stays. Import the file again to send the rest: what was sent before changes nothing.</Notice>}
          <button type="button" class="primary" disabled={busy} onClick={() => void go()}>
            {error ? "Go on" : `Import ${count(records.length)} records`}
          </button>
        </>
      ) : (
        <p>
          What became of them, with what was refused when it was applied:{" "}
          {posts.map(({ receipt }, i) => (
            <a key={receipt!.id} href={link(`posted/${receipt!.id}`)}>{`receipt ${i + 1}`} </a>
          ))}
        </p>
      )}
    </Panel>
  );
}
