// The records: lists with search, filters and pages, and single ones.
import type { ComponentChildren } from "preact";
import { api, ask } from "../api";
import { download } from "../csv";
import { amount, count, title } from "../format";
import { lists, type List } from "../kinds";
import { useAction, useLoad } from "../load";
import { go, link, type Route } from "../route";
import { can, useMe, why } from "../session";
import { Copy, Facts, Failed, Id, Input, Json, Loading, Notice, Page, Pager, Panel, Select, Status, Table, Time, type Column } from "../ui";

// Row is a record of any kind. Fields are read by their names, which the columns
// below know.
interface Row {
  id: string;
  [field: string]: unknown;
}

interface Definition {
  one: string;
  name: (row: Row) => string;
  searched: string; // what a search looks at
  filters: [name: string, label: string, values: string[]][];
  orders: string[];
  columns: Column<Row>[];
  leads?: (row: Row) => [text: string, path: string, query?: Record<string, string>][]; // to records that belong to it
}

const text = (row: Row, field: string) => (row[field] == null ? "" : String(row[field]));
const plain = (label: string, field: string): Column<Row> => ({ label, cell: (row) => text(row, field) || "–" });
const money = (label: string, field: string): Column<Row> => ({
  label,
  number: true,
  cell: (row) => amount(row[field] as number | null, row.currency as string | undefined),
});
const quantity = (label: string, field: string): Column<Row> => ({ label, number: true, cell: (row) => text(row, field) });
const state = (label: string, field: string): Column<Row> => ({ label, cell: (row) => <Status of={text(row, field)} /> });
const when = (label: string, field: string): Column<Row> => ({ label, cell: (row) => <Time at={row[field] as string | null} /> });
const active: [string, string, string[]] = ["isActive", "Active", ["true", "false"]];
const activeColumn: Column<Row> = { label: "Active", cell: (row) => (row.isActive ? "yes" : "no") };

// vendor is that of imported products, whose brand it names.
const vendor: Column<Row> = {
  label: "Vendor",
  cell: (row) => {
    const { vendor: name } = row.attributes as Record<string, unknown>;
    if (typeof name !== "string") return "–";
    return row.brandId ? <a href={link("records/products", { brandId: text(row, "brandId") })}>{name}</a> : name;
  },
};

const person = (row: Row) => text(row, "companyName") || `${text(row, "firstName")} ${text(row, "lastName")}`.trim() || text(row, "email") || row.id;

const definitions: Record<List, Definition> = {
  products: {
    one: "Product",
    name: (row) => text(row, "name"),
    searched: "name, SKU, barcode, tags",
    filters: [["type", "Type", ["PHYSICAL", "DIGITAL", "SERVICE", "BUNDLE", "GIFT_CARD"]], active],
    orders: ["createdAt", "updatedAt", "name", "sku", "sellingPrice", "purchasePrice"],
    columns: [plain("SKU", "sku"), vendor, money("Price", "sellingPrice"), activeColumn, when("Changed", "updatedAt")],
    leads: (row) => [
      ["Its stock", "stock", { productId: row.id }],
      ["All of its brand", "products", { brandId: text(row, "brandId") }],
      ["All of its category", "products", { categoryId: text(row, "categoryId") }],
    ],
  },
  categories: {
    one: "Category",
    name: (row) => text(row, "name"),
    searched: "name, slug",
    filters: [active],
    orders: ["order", "name", "createdAt", "updatedAt"],
    columns: [plain("Slug", "slug"), activeColumn, when("Changed", "updatedAt")],
    leads: (row) => [["Its products", "products", { categoryId: row.id, includeDescendants: "true" }]],
  },
  orders: {
    one: "Order",
    name: (row) => text(row, "orderNumber"),
    searched: "order number, customer's name and email",
    filters: [
      ["status", "State", ["DRAFT", "PENDING", "CONFIRMED", "PROCESSING", "COMPLETED", "CANCELLED"]],
      ["paymentStatus", "Payment", ["UNPAID", "PENDING", "AUTHORIZED", "PARTIALLY_PAID", "PAID", "PARTIALLY_REFUNDED", "REFUNDED", "FAILED", "VOIDED"]],
      ["fulfillmentStatus", "Fulfilment", ["UNFULFILLED", "PARTIALLY_FULFILLED", "FULFILLED", "SHIPPED", "DELIVERED", "RETURNED", "CANCELLED"]],
    ],
    orders: ["placedAt", "createdAt", "updatedAt", "total", "orderNumber"],
    columns: [plain("Customer", "customerName"), money("Total", "total"), state("State", "status"), state("Payment", "paymentStatus"), when("Placed", "placedAt")],
    leads: (row) => [
      ["Its customer", `customers/${text(row, "customerId")}`],
      ["Its invoices", "invoices", { orderId: row.id }],
    ],
  },
  customers: {
    one: "Customer",
    name: person,
    searched: "names, company, email, phone, customer number",
    filters: [["type", "Type", ["INDIVIDUAL", "BUSINESS"]], active],
    orders: ["createdAt", "updatedAt", "lastName", "totalSpent", "ordersCount"],
    columns: [
      plain("Email", "email"),
      { label: "Orders", number: true, cell: (row) => count(Number(row.ordersCount ?? 0)) },
      money("Spent", "totalSpent"),
      when("Last order", "lastOrderAt"),
    ],
    leads: (row) => [
      ["Its orders", "orders", { customerId: row.id }],
      ["Its invoices", "invoices", { customerId: row.id }],
    ],
  },
  invoices: {
    one: "Invoice",
    name: (row) => text(row, "invoiceNumber") || row.id,
    searched: "invoice number, customer's name",
    filters: [
      ["type", "Type", ["INVOICE", "CREDIT_NOTE"]],
      ["status", "State", ["DRAFT", "ISSUED", "PARTIALLY_PAID", "PAID", "REFUNDED", "VOID", "UNCOLLECTIBLE"]],
      ["isOverdue", "Overdue", ["true", "false"]],
    ],
    orders: ["issuedAt", "createdAt", "updatedAt", "dueAt", "total", "invoiceNumber"],
    columns: [plain("Customer", "customerName"), money("Total", "total"), money("Due", "amountDue"), state("State", "status"), when("Issued", "issuedAt")],
    leads: (row) => [
      ["Its customer", `customers/${text(row, "customerId")}`],
      ["Its order", `orders/${text(row, "orderId")}`],
    ],
  },
  stock: {
    one: "Stock",
    name: (row) => text(row, "locationRef") || row.id,
    searched: "location",
    filters: [],
    orders: ["updatedAt", "createdAt", "available", "onHand"],
    columns: [quantity("On hand", "onHand"), quantity("Reserved", "reserved"), quantity("Available", "available"), when("Changed", "updatedAt")],
    leads: (row) => [["Its product", `products/${text(row, "productId")}`]],
  },
};

// nameOfRecord is what people call a record of a list.
export const nameOfRecord = (kind: string, row: Row) => definitions[kind as List]?.name(row) || row.id;

export function Records({ path: [kind = "products", id], query }: Route) {
  const me = useMe();
  if (!lists.includes(kind as List)) {
    return (
      <Page title="Records">
        <Notice>There are no such records.</Notice>
      </Page>
    );
  }
  const reason = why(me, `${kind}:read`);
  if (id && !reason) return <Single kind={kind as List} id={id} />;
  return (
    <Page title={title(kind.toUpperCase())}>
      <nav class="tabs" aria-label="Kinds of records">
        {lists.map((k) => (
          <a key={k} href={link(`records/${k}`)} aria-current={k === kind ? "page" : undefined}>
            {title(k.toUpperCase())}
          </a>
        ))}
      </nav>
      {reason ? <Notice>{reason}</Notice> : <List kind={kind as List} query={query} />}
    </Page>
  );
}

// belongs are filters that only links set, by what the records shown belong to.
const belongs: Record<string, string> = { brandId: "brand", categoryId: "category", includeDescendants: "its subcategories", customerId: "customer", orderId: "order", productId: "product" };
const belongings = Object.keys(belongs);

function List({ kind, query }: { kind: List; query: URLSearchParams }) {
  const d = definitions[kind];
  const names = ["search", "orderBy", "orderDirection", ...d.filters.map(([name]) => name), ...belongings];
  const given = Object.fromEntries(names.map((name) => [name, query.get(name) ?? ""]));
  const show = (change: Record<string, string>) => go(link(`records/${kind}`, { ...given, ...change }));
  const wanted = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ""));
  const saving = useAction();
  const { data, error, reload } = useLoad(() => {
    // The filters of the kinds are not the same: those that are shown are of this one.
    return ask(api.GET(`/api/${kind}`, { params: { query: { ...wanted, page: Number(query.get("page") ?? 1) } } }));
  }, [kind, query.toString()]);
  const choice = (name: string, label: string, values: string[], none: string) => (
    <Select
      key={name}
      label={label}
      value={given[name] ?? ""}
      onChange={(value) => show({ [name]: value })}
      options={[["", none], ...values.map((v): [string, string] => [v, { true: "yes", false: "no" }[v] ?? (v === v.toUpperCase() ? title(v) : v)])]}
    />
  );
  return (
    <>
      <form class="filters" role="search" aria-label={title(kind.toUpperCase())} onSubmit={(e) => e.preventDefault()}>
        <Input key={given.search} label="Search" name="search" type="search" value={given.search} maxLength={200} placeholder={d.searched} onChange={(search) => show({ search: search.trim() })} />
        {d.filters.map(([name, label, values]) => choice(name, label, values, "all"))}
        {choice("orderBy", "Order by", d.orders, "default")}
        {given.orderBy && choice("orderDirection", "Direction", ["asc", "desc"], "default")}
      </form>
      <div class="actions">
        {files.map((file) => (
          <button key={file.name} type="button" disabled={saving.busy} onClick={() => saving.run(() => save(kind, wanted, file))}>
            Download as {file.name}
          </button>
        ))}
      </div>
      <Failed error={saving.error} />
      {belongings.some((name) => given[name]) && (
        <p class="hint">
          Only those of one {belongings.filter((name) => given[name]).map((name) => belongs[name]).join(", ")}. <a href={link(`records/${kind}`)}>Show all</a>
        </p>
      )}
      <Failed error={error} retry={reload} />
      {data ? (
        <>
          <Table<Row>
            label={title(kind.toUpperCase())}
            rows={data.data as unknown as Row[]}
            id={(row) => row.id}
            empty={query.toString() ? "No record matches." : `There are no ${kind} yet.`}
            columns={[{ label: d.one, cell: (row) => <a href={link(`records/${kind}/${row.id}`)}>{d.name(row)}</a> }, ...d.columns]}
          />
          <Pager meta={data.meta} go={(page) => show({ page: String(page) })} />
        </>
      ) : (
        !error && <Loading />
      )}
    </>
  );
}

const files = [
  { name: "CSV", type: "text/csv", ending: "csv" },
  { name: "JSON lines", type: "application/x-ndjson", ending: "jsonl" },
];

// save downloads every record that the filters select, by a walk, whose order is that of the ids.
async function save(kind: List, { orderBy, orderDirection, ...filters }: Record<string, string>, { type, ending }: (typeof files)[number]) {
  const parts: Blob[] = []; // which the browser keeps out of memory
  let next: string | undefined;
  do {
    const query = { ...filters, orderBy: "id" as const, limit: 1000, afterId: next };
    const answer = api.GET(`/api/${kind}`, { params: { query }, headers: { Accept: type }, parseAs: "text" });
    const text = await ask<string>(answer);
    // Each page of CSV begins with the names of the columns.
    parts.push(new Blob([next && ending === "csv" ? text.slice(text.indexOf("\n") + 1) : text]));
    next = (await answer).response.headers.get("Link")?.match(/afterId=([^>&]+)>; rel="next"/)?.[1];
  } while (next);
  download(`${kind}.${ending}`, type, ...parts);
}

// articlesOf are the articles of an order or an invoice.
const articlesOf = (row: Row) => (row.items ?? row.lines ?? []) as Row[];

const lineColumns = (of: Row): Column<Row>[] => {
  const price = (label: string, field: string): Column<Row> => ({ label, number: true, cell: (line) => amount(line[field] as number | null, text(of, "currency")) });
  return [
    {
      label: "Article",
      cell: (line) => (line.productId ? <a href={link(`records/products/${text(line, "productId")}`)}>{text(line, "name")}</a> : text(line, "name") || text(line, "description")),
    },
    plain("SKU", "sku"),
    { label: "Quantity", number: true, cell: (line) => text(line, "quantity") },
    price("Price", "unitPrice"),
    price("Total", "total"),
  ];
};

// factsOf are the addresses, the pictures and the description, as far as the record has them.
function factsOf(row: Row): [string, ComponentChildren][] {
  const address = (of: unknown) => {
    const a = (of ?? {}) as Row;
    const city = `${text(a, "postalCode")} ${text(a, "city")}`.trim();
    return [text(a, "company"), `${text(a, "firstName")} ${text(a, "lastName")}`.trim(), text(a, "line1"), text(a, "line2"), city, text(a, "country")].filter(Boolean).join(", ");
  };
  const pictures = ((row.images ?? []) as { url: string }[]).map(({ url }, i) => (
    <>
      {i > 0 && ", "}
      <a href={url} rel="noreferrer" target="_blank">
        {i + 1}
      </a>
    </>
  ));
  // A shop's description is HTML, of which this shows the text.
  const description = new DOMParser().parseFromString(text(row, "description"), "text/html").body.textContent;
  const facts: [string, ComponentChildren][] = [
    ["Billed to", address(row.billingAddress)], ["Shipped to", address(row.shippingAddress)], ["Description", description], ["Pictures", pictures.length > 0 && pictures],
  ];
  return facts.filter(([, value]) => value);
}

// leadsOf leaves out what the record does not belong to.
const leadsOf = (d: Definition, row: Row) => (d.leads?.(row) ?? []).filter(([, to, query]) => !to.endsWith("/") && !Object.values(query ?? {}).includes(""));

function Single({ kind, id }: { kind: List; id: string }) {
  const me = useMe();
  const d = definitions[kind];
  const { data, error, reload } = useLoad(() => ask(api.GET(`/api/${kind}/{id}`, { params: { path: { id } } })), [kind, id]);
  if (!data) return <Page title={d.one}>{error ? <Failed error={error} retry={reload} /> : <Loading />}</Page>;
  const row = data as unknown as Row;
  return (
    <Page
      title={`${d.one} ${d.name(row)}`}
      actions={
        <>
          {leadsOf(d, row).map(([name, to, query]) => (
            <a key={name} href={link(`records/${to}`, query)}>
              {name}
            </a>
          ))}
          {can(me, "webhooks:read") && <a href={link(`deliveries/trace/${id}`)}>What became of it</a>}
        </>
      }
    >
      <Panel title="Summary">
        <Facts of={[...d.columns.map((c): [string, ComponentChildren] => [c.label, c.cell(row)]), ...factsOf(row), ["Id", <Id value={id} what="the id" />]]} />
      </Panel>
      {articlesOf(row).length > 0 && (
        <Panel title="Lines">
          <Table<Row> label="Lines" rows={articlesOf(row)} id={(line) => line.id} empty="" columns={lineColumns(row)} />
        </Panel>
      )}
      <Panel title="JSON" actions={<Copy text={JSON.stringify(row, null, 2)} what="the JSON" />}>
        <Json of={row} label={d.one} />
      </Panel>
    </Page>
  );
}
