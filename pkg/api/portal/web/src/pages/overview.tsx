// The state of the service, for who is signed in.
import { api, ask, base, type Client, type Endpoint, type StatsPoint } from "../api";
import { Bars, outcomes, successRate } from "../chart";
import { count, milliseconds } from "../format";
import { lists } from "../kinds";
import { useLoad } from "../load";
import { link } from "../route";
import { can, useMe, why } from "../session";
import { Failed, Loading, Notice, Page, Panel, Status, Table, Time } from "../ui";
import { failing, getAlerts, getStats, listApplications, listEndpoints, maxStats, stateOf } from "../webhooks";

export function Overview() {
  const me = useMe();
  return (
    <Page title="Overview">
      <Health />
      {can(me, "webhooks:read") ? <Webhooks /> : <Notice>{why(me, "webhooks:read")}</Notice>}
      <Records />
    </Page>
  );
}

function Health() {
  const { data, error } = useLoad(
    async (from) => {
      const started = performance.now();
      await ask(from.GET("/health"));
      return from === api ? `, in ${milliseconds(Math.ceil(performance.now() - started))}` : ""; // without the wait for a turn
    },
    [],
    "live",
  );
  return (
    <p class={`health ${error ? "bad" : "good"}`} role="status">
      {error ? `The service does not answer: ${error.message}` : data === undefined ? "Asking the service …" : `The service answers${data}.`}{" "}
      <a href={`${base}/health`}>/health</a>
    </p>
  );
}

// FirstSteps leads to the first verified webhook. It goes once all is done.
function FirstSteps({ endpoints }: { endpoints: Endpoint[] }) {
  const { data } = useLoad(async () => {
    const applications = await listApplications();
    const path = { id: (applications.find((a) => a.id === endpoints[0]?.applicationId) ?? applications[0])?.id ?? "" };
    if (!path.id) return { id: "", keys: [], alerts: false };
    const [keys, alerts] = await Promise.all([
      ask(api.GET("/developers/applications/{id}/api-keys", { params: { path } })).then((page) => page.data),
      getAlerts(path.id).then(({ body }) => body !== null),
    ]);
    return { id: path.id, keys, alerts };
  }, [endpoints[0]?.applicationId]);
  if (!data) return null;
  const application = data.id ? `applications/${data.id}` : "applications";
  const steps: [done: boolean, text: string, href: string][] = [
    [data.id !== "", "Create an application for your program", link(application)],
    [data.keys.length > 0, "Give it an API key", link(application)],
    [data.keys.some((k) => k.lastUsedAt !== null), "Send the first request with the key", `${base}/docs/first-integration#2-read`],
    [endpoints.length > 0, "Create an endpoint for webhooks", link("endpoints")],
    [endpoints.some((e) => e.lastSuccessAt !== null), "Receive and verify the first webhook", `${base}/docs/webhooks#verify`],
    [data.alerts, "Name a URL for alerts of failing endpoints", link(application)],
  ];
  if (steps.every(([done]) => done)) return null;
  return (
    <Panel title="First steps">
      <ol class="steps">
        {steps.map(([done, text, href]) => (
          <li key={text} class={done ? "done" : ""}>
            {done ? `${text}: done` : <a href={href}>{text}</a>}
          </li>
        ))}
      </ol>
    </Panel>
  );
}

// total is how many deliveries have the status.
const total = (from: Client, status: "PENDING" | "HELD" | "FAILED") =>
  ask(from.GET("/developers/webhooks/events", { params: { query: { status: [status], limit: 1 } } })).then((page) => page.meta.total);

function Webhooks() {
  const me = useMe();
  const { data: endpoints, error } = useLoad(listEndpoints, [], "live");
  if (!endpoints) return error ? <Failed error={error} /> : <Loading />;
  return (
    <>
      {can(me, "developers:read") && <FirstSteps endpoints={endpoints} />}
      <Failed error={error} />
      <Attempts endpoints={endpoints} />
    </>
  );
}

function Attempts({ endpoints }: { endpoints: Endpoint[] }) {
  const asked = endpoints.slice(0, maxStats);
  const { data, error } = useLoad(
    async (from) => {
      const totals = [total(from, "PENDING"), total(from, "HELD"), total(from, "FAILED")] as const;
      const [pending, held, failed, ...stats] = await Promise.all([...totals, ...asked.map((e) => getStats(e, from))]);
      return { pending, held, failed, stats };
    },
    [asked.map((e) => e.id).join()],
    "live",
  );
  if (!data) return error ? <Failed error={error} /> : <Loading />;
  const all = sum(data.stats.map((s) => s.data));
  const rows = endpoints.map((endpoint, i) => ({ endpoint, stats: data.stats[i] }));
  const troubles = rows.map(({ endpoint, stats }) => ({ endpoint, trouble: failing(endpoint, stats) })).filter(({ trouble }) => trouble);
  return (
    <>
      <Failed error={error} />
      <ul class="figures">
        <Figure name="Success rate, 24 h" value={successRate(all)} />
        <Figure name="Attempts, 24 h" value={count(all.reduce((n, p) => n + p.successCount + p.failureCount, 0))} />
        <Figure name="Waiting" value={count(data.pending)} href={link("deliveries", { status: "PENDING" })} />
        <Figure name="Held" value={count(data.held)} href={link("deliveries", { status: "HELD" })} />
        <Figure name="Failed" value={count(data.failed)} href={link("deliveries", { status: "FAILED" })} />
      </ul>
      <Panel title="Attempts by hour">
        {all.length === 0 ? <p class="empty">There is no endpoint yet.</p> : <Bars label="Attempts by hour" good="answered 2xx" bad="failed" bars={outcomes(all)} />}
        {endpoints.length > maxStats && <p class="hint">Of the first {maxStats} endpoints.</p>}
      </Panel>
      {troubles.length > 0 && (
        <Panel title="Needs attention">
          <ul class="troubles">
            {troubles.map(({ endpoint, trouble }) => (
              <li key={endpoint.id}>
                <Named endpoint={endpoint} /> {trouble}
              </li>
            ))}
          </ul>
        </Panel>
      )}
      <Panel title="Endpoints">
        <Table
          label="Endpoints"
          rows={rows}
          id={(r) => r.endpoint.id}
          empty="There is no endpoint yet."
          columns={[
            { label: "Endpoint", cell: ({ endpoint }) => <Named endpoint={endpoint} /> },
            { label: "State", cell: ({ endpoint, stats }) => <Status of={stateOf(endpoint, stats)} /> },
            { label: "Success, 24 h", number: true, cell: ({ stats }) => (stats ? successRate(stats.data) : "–") },
            { label: "95% within", number: true, cell: ({ stats }) => milliseconds(stats && slowest(stats.data)) },
            { label: "Last success", cell: ({ endpoint }) => <Time at={endpoint.lastSuccessAt} never="never" /> },
          ]}
        />
      </Panel>
    </>
  );
}

const Named = ({ endpoint }: { endpoint: Endpoint }) => <a class="url" href={link(`endpoints/${endpoint.id}`)}>{endpoint.description || endpoint.url}</a>;

function Figure({ name, value, href }: { name: string; value: string; href?: string }) {
  return (
    <li>
      <span>{name}</span>
      <strong>{href ? <a href={href}>{value}</a> : value}</strong>
    </li>
  );
}

// slowest is the largest p95 of the hours.
const slowest = (points: StatsPoint[]) => points.reduce<number | null>((top, p) => (p.p95Ms === null ? top : Math.max(top ?? 0, p.p95Ms)), null);

// sum adds the attempts of several endpoints, hour by hour.
function sum(stats: StatsPoint[][]): StatsPoint[] {
  const hours = new Map<string, StatsPoint>();
  for (const p of stats.flat()) {
    const before = hours.get(p.at);
    hours.set(p.at, {
      at: p.at, p50Ms: null, p95Ms: null,
      successCount: (before?.successCount ?? 0) + p.successCount,
      failureCount: (before?.failureCount ?? 0) + p.failureCount,
      filteredCount: (before?.filteredCount ?? 0) + p.filteredCount,
    });
  }
  return [...hours.values()].sort((a, b) => a.at.localeCompare(b.at));
}

function Records() {
  const me = useMe();
  const readable = lists.filter((kind) => can(me, `${kind}:read`));
  const { data, error } = useLoad(
    (from) => Promise.all(readable.map((kind) => ask(from.GET(`/api/${kind}`, { params: { query: { limit: 1 } } })).then((page) => page.meta.total))),
    [],
    "live",
  );
  if (readable.length === 0) return null;
  return (
    <Panel title="Records">
      <Failed error={error} />
      <ul class="figures">
        {readable.map((kind, i) => (
          <Figure key={kind} name={kind.charAt(0).toUpperCase() + kind.slice(1)} value={data ? count(data[i]!) : "…"} href={link(`records/${kind}`)} />
        ))}
      </ul>
    </Panel>
  );
}
