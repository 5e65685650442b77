// The shops whose webhooks bring records in: how to connect one, and what came.
import { useState } from "preact/hooks";
import { api, ask, tagged, type Client, type Match, type Once, type Receipt, type Source, type Tagged } from "../api";
import { count } from "../format";
import { useLoad } from "../load";
import { go, link, type Route } from "../route";
import { can, useMe } from "../session";
import { Copy, Facts, Failed, FormDialog, Input, Loading, Page, Panel, Select, Shown, Table, Time, valueOf } from "../ui";
import { State } from "./receipts";

const systems: Record<string, string> = { SHOPIFY: "Shopify", WOOCOMMERCE: "WooCommerce" };
const systemOf = (s: Source) => systems[s.kind] ?? s.kind;

// minted is the secret of an answer that shows it in full.
const minted = (s: Source) => (s.secret.startsWith("****") ? "" : s.secret);

export function Sources() {
  const me = useMe();
  const [creates, setCreates] = useState(false);
  const [created, setCreated] = useState<Source>();
  const { data, error } = useLoad((from) => ask(from.GET("/developers/sources")), []);
  const open = (s: Source) => (minted(s) ? setCreated(s) : go(link(`sources/${s.id}`)));
  return (
    <Page
      title="Sources"
      actions={
        can(me, "developers:write") && can(me, "records:write") && (
          <button type="button" class="primary" onClick={() => setCreates(true)}>
            Create a source
          </button>
        )
      }
    >
      <p class="hint">Shops whose webhooks bring products, orders, customers and stock in.</p>
      <Failed error={error} />
      {data ? (
        <Table<Source>
          label="Sources"
          rows={data.data}
          id={(s) => s.id}
          empty="There is no source yet."
          columns={[
            { label: "Name", cell: (s) => <a href={link(`sources/${s.id}`)}>{s.name}</a> },
            { label: "System", cell: systemOf },
            { label: "Created", cell: (s) => <Time at={s.createdAt} /> },
          ]}
        />
      ) : (
        !error && <Loading />
      )}
      {creates && <Create close={() => setCreates(false)} done={open} />}
      {created && <Shown title="The source is there" secrets={[["Secret", created.secret]]} close={() => go(link(`sources/${created.id}`))} />}
    </Page>
  );
}

function Create({ close, done }: { close: () => void; done: (created: Source) => void }) {
  const [kind, setKind] = useState("SHOPIFY");
  const create = async (fields: FormData, header: Once) => {
    const body = { kind: kind as Source["kind"], name: valueOf(fields, "name"), idPrefix: valueOf(fields, "idPrefix"), secret: valueOf(fields, "secret") || null };
    done(await ask(api.POST("/developers/sources", { params: { header }, body })));
  };
  return (
    <FormDialog title="Create a source" submit="Create" act={create} close={close}>
      <Select label="System" value={kind} options={Object.entries(systems)} onChange={setKind} />
      <Input label="Name" name="name" required maxLength={120} />
      {kind === "SHOPIFY" && <ShopifySecret />}
      <Input label="Prefix of ids" name="idPrefix" maxLength={40} hint="Only for a second shop of the system. Empty: a product has the same id as in an imported file." />
    </FormDialog>
  );
}

const ShopifySecret = () => <Input label="Secret" name="secret" type="password" autoComplete="off" required maxLength={255} hint="Shopify shows it where webhooks are set up." />;

export function SourcePage({ path: [id = ""] }: Route) {
  const me = useMe();
  const [opened, setOpened] = useState<"" | "rotate" | "delete">("");
  const [secret, setSecret] = useState("");
  const { data: state, error, reload } = useLoad((from) => tagged(from.GET("/developers/sources/{id}", { params: { path: { id } } })), [id]);
  if (!state) return <Page title="Source">{error ? <Failed error={error} /> : <Loading />}</Page>;
  const s = state.body;
  const close = () => setOpened("");
  return (
    <Page
      title={s.name}
      actions={
        can(me, "developers:write") && (
          <>
            {can(me, "records:write") && (
              <button type="button" onClick={() => setOpened("rotate")}>
                Rotate the secret
              </button>
            )}
            <button type="button" class="danger" onClick={() => setOpened("delete")}>
              Delete
            </button>
          </>
        )
      }
    >
      <Panel title="About it">
        <Facts
          of={[
            ["System", systemOf(s)],
            ["Delivery URL", <><span class="url">{s.url}</span> <Copy text={s.url} what="the URL" /></>],
            ["Secret", <code>{s.secret}</code>],
            ["Prefix of ids", s.idPrefix || "–"],
          ]}
        />
      </Panel>
      {can(me, "records:write") && <Received id={id} />}
      {opened === "rotate" && <Rotate of={state} close={close} done={(made) => { setSecret(made); reload(); }} />}
      {opened === "delete" && <Delete of={state} close={close} />}
      {secret && <Shown title="The new secret" secrets={[["Secret", secret]]} close={() => setSecret("")} />}
    </Page>
  );
}

const shown = 100;

// latest reads the last receipts of a source, which other receipts stand between.
async function latest(from: Client, sourceId: string): Promise<Receipt[]> {
  const found: Receipt[] = [];
  for (let before: string | undefined, pages = 0; pages < 5 && found.length < shown; pages++) {
    const page = await ask(from.GET("/ingest/receipts", { params: { query: { sourceId, before, limit: shown } } }));
    found.push(...page.data);
    if (!page.meta.next) break;
    before = page.meta.next;
  }
  return found.slice(0, shown);
}

function Received({ id }: { id: string }) {
  const { data, error } = useLoad((from) => latest(from, id), [id], "live");
  return (
    <Panel title="The last hundred webhooks">
      <Failed error={error} />
      <Table<Receipt>
        label="Webhooks"
        rows={data ?? []}
        id={(r) => r.id}
        empty={data ? "Nothing came within 7 days." : "Loading …"}
        columns={[
          { label: "Received", cell: (r) => <a href={link(`posted/${r.id}`)}><Time at={r.createdAt} /></a> },
          { label: "Topic", cell: (r) => r.topic || "–" },
          { label: "State", cell: (r) => <State of={r} /> },
          { label: "Records", number: true, cell: (r) => count(r.recordCount) },
          { label: "Refused", number: true, cell: (r) => count(r.refusedCount) },
        ]}
      />
    </Panel>
  );
}

function Rotate({ of, close, done }: { of: Tagged<Source>; close: () => void; done: (secret: string) => void }) {
  const rotate = async (fields: FormData, header: Once) => {
    const body = { overlapHours: Number(valueOf(fields, "overlapHours")), secret: valueOf(fields, "secret") || null };
    done(minted(await ask(api.POST("/developers/sources/{id}/rotate-secret", { params: { path: { id: of.body.id }, header: { ...header, "If-Match": of.tag } }, body }))));
  };
  return (
    <FormDialog title="Rotate the secret?" submit="Rotate" act={rotate} close={close}>
      <p>For a time webhooks by the old secret are taken, too.</p>
      {of.body.kind === "SHOPIFY" && <ShopifySecret />}
      <Input label="Hours with both" name="overlapHours" type="number" min={0} max={168} required value="24" hint="0 to 168." />
    </FormDialog>
  );
}

function Delete({ of, close }: { of: Tagged<Source>; close: () => void }) {
  const remove = async (_: FormData, _once: Once, _match: Match) => {
    await ask(api.DELETE("/developers/sources/{id}", { params: { path: { id: of.body.id } }, headers: { "If-Match": of.tag } }));
    go(link("sources"));
  };
  return (
    <FormDialog title="Delete the source?" submit="Delete" danger act={remove} close={close}>
      <p>Its webhooks are refused from now on. Its records stay.</p>
    </FormDialog>
  );
}
