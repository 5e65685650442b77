// One endpoint: how it does, and everything that can be done with it.
import { useState } from "preact/hooks";
import { api, ask, tagged, type Endpoint, type EndpointStats, type Match, type Once, type Recovery, type StatsPoint, type Tagged } from "../api";
import { Bars, Latencies, outcomes, successRate } from "../chart";
import { decide, listOf, textOf, type Editable } from "../edit";
import { count, fullTime, milliseconds, title } from "../format";
import { useAction, useLoad, type Loaded } from "../load";
import { go, link, type Route } from "../route";
import { can, useMe } from "../session";
import { Facts, Failed, Field, FormDialog, Id, Input, Loading, Notice, Page, Panel, Select, Shown, Status, Time, valueOf } from "../ui";
import { failing, getDelivery, listEventTypes, stateOf } from "../webhooks";
import { Subscriptions, subscribed } from "./subscriptions";

const path = (id: string) => ({ params: { path: { id } } });

const editable = (state: Tagged<Endpoint>): Editable<Endpoint> => ({
  state,
  load: () => tagged(api.GET("/developers/webhooks/endpoints/{id}", path(state.body.id))),
  values: (e) => ({ url: e.url, description: e.description ?? "", events: e.subscribedEvents, status: title(e.status), secret: e.secret }),
});

type Opened = "" | "test" | "edit" | "rotate" | "delete" | "recover";

export function EndpointPage({ path: [id = ""] }: Route) {
  const me = useMe();
  const [opened, setOpened] = useState<Opened>("");
  const [secret, setSecret] = useState("");
  const [said, setSaid] = useState("");
  const [tested, setTested] = useState("");
  const [recovery, setRecovery] = useState("");
  const { data: state, error, reload } = useLoad((from) => tagged(from.GET("/developers/webhooks/endpoints/{id}", path(id))), [id], "live");
  const [interval, setInterval] = useState("hour");
  const stats = useLoad(
    (from) => ask(from.GET("/developers/webhooks/endpoints/{id}/stats", { params: { path: { id }, query: { interval: interval as "hour" | "day" } } })),
    [id, interval],
    "live",
  );
  const action = useAction();
  if (!state) return <Page title="Endpoint">{error ? <Failed error={error} /> : <Loading />}</Page>;
  const data = state.body;

  const close = () => setOpened("");
  const setState = (status: "ACTIVE" | "PAUSED") =>
    action.run(async () => {
      const patch = (match: Match) => ask(api.PATCH("/developers/webhooks/endpoints/{id}", { ...path(id), headers: match, body: { status } }));
      await decide(editable(state), patch).finally(reload);
      setSaid(status === "PAUSED" ? "It is paused: its events are held." : "It is active. If its circuit is open, a probe is sent at once, whose success sends what the circuit held. What was held for another reason goes out when you recover it.");
    });
  const trouble = failing(data, stats.data);
  return (
    <Page
      title={data.description || data.url}
      actions={
        can(me, "webhooks:write") && (
          <>
            <button type="button" onClick={() => setOpened("test")}>
              Send a test
            </button>
            {data.status === "ACTIVE" ? (
              <button type="button" disabled={action.busy} onClick={() => setState("PAUSED")}>
                Pause
              </button>
            ) : (
              <button type="button" class="primary" disabled={action.busy} onClick={() => setState("ACTIVE")}>
                Activate
              </button>
            )}
            <button type="button" onClick={() => setOpened("recover")}>
              Recover
            </button>
            <button type="button" onClick={() => setOpened("edit")}>
              Edit
            </button>
            <button type="button" onClick={() => setOpened("rotate")}>
              Rotate the secret
            </button>
            <button type="button" class="danger" onClick={() => setOpened("delete")}>
              Delete
            </button>
          </>
        )
      }
    >
      <Failed error={action.error ?? error} />
      <div class="said" role="status">
        {said && <p class="notice good">{said}</p>}
      </div>
      {trouble && <Notice>{trouble}</Notice>}
      {tested && <TestResult key={tested} delivery={tested} />}
      {recovery && <Progress endpoint={id} recovery={recovery} />}
      <About endpoint={data} stats={stats.data} />
      <Statistics of={stats} interval={interval} choose={setInterval} />
      {opened === "test" && <SendTest id={id} close={close} done={setTested} />}
      {opened === "edit" && <Edit of={state} close={close} done={reload} />}
      {opened === "recover" && <Recover id={id} close={close} done={setRecovery} />}
      {opened === "rotate" && <Rotate of={state} close={close} done={(made) => { setSecret(made); reload(); }} />}
      {opened === "delete" && <Delete of={state} close={close} />}
      {secret && <Shown title="The new secret" secrets={[["Signing secret", secret]]} close={() => setSecret("")} />}
    </Page>
  );
}

function About({ endpoint: e, stats }: { endpoint: Endpoint; stats?: EndpointStats }) {
  return (
    <Panel
      title="About it"
      actions={
        <>
          <a href={link(`endpoints/${e.id}/delivery`)}>Delivery settings</a>
          <a href={link("deliveries", { endpointId: e.id })}>Its deliveries</a>
        </>
      }
    >
      <Facts
        of={[
          ["State", <Status of={stateOf(e, stats)} />],
          ["URL", <span class="url">{e.url}</span>],
          ["Subscribed events", e.subscribedEvents.join(", ")],
          ["Attempts since it was created", `${count(e.successCount)} answered 2xx, ${count(e.failureCount)} failed`],
          ["Last success", <Time at={e.lastSuccessAt} never="never" />],
          ["Last failure", e.lastFailureAt ? <><Time at={e.lastFailureAt} />: {e.lastFailureReason}</> : "never"],
          ["Retries", e.retryCount],
          ["An attempt may take", `${e.timeoutSeconds} s`],
          ["Signing secret", <><code>{e.secret}</code> <a href={link("signature")}>Check a signature</a></>],
          ["Endpoint", <Id value={e.id} what="the endpoint's id" />],
        ]}
      />
    </Panel>
  );
}

const spans: [string, string][] = [
  ["hour", "the last 24 hours"],
  ["day", "the last 30 days"],
];

function Statistics({ of: { data, error }, interval, choose }: { of: Loaded<EndpointStats>; interval: string; choose: (interval: string) => void }) {
  if (!data) return error ? <Failed error={error} /> : <Loading />;
  return (
    <>
      <Select label="Charts of" value={interval} onChange={choose} options={spans} />
      <div class="columns">
        <Panel title="Attempts" actions={<span>{rates(data.data)}</span>}>
          <Bars label="Attempts" good="answered 2xx" bad="failed" bars={outcomes(data.data)} />
        </Panel>
        <Panel title="Latency">
          <Latencies points={data.data} />
        </Panel>
      </div>
    </>
  );
}

// rates tell how attempts went, and how many events got none.
function rates(points: StatsPoint[]) {
  const filtered = points.reduce((sum, p) => sum + p.filteredCount, 0);
  return `${successRate(points)} answered 2xx${filtered ? `, events filtered: ${count(filtered)}` : ""}`;
}

function Edit({ of, close, done }: { of: Tagged<Endpoint>; close: () => void; done: () => void }) {
  const types = useLoad(listEventTypes, []);
  const save = async (fields: FormData, _: Once, match: Match) => {
    await ask(
      api.PATCH("/developers/webhooks/endpoints/{id}", {
        ...path(of.body.id),
        headers: match,
        // Before the types are there, the form has no box of the subscription, and leaves it as it is.
        body: { url: valueOf(fields, "url"), description: valueOf(fields, "description") || null, ...(types.data && { events: subscribed(fields) }) },
      }),
    );
    done();
  };
  return (
    <FormDialog title="Edit the endpoint" submit="Save" edits={editable(of)} act={save} close={close}>
      {(values) => (
        <>
          <Failed error={types.error} />
          <Input label="URL" name="url" type="url" required maxLength={2048} value={textOf(values, "url")} hint="Another URL gets none of the headers in the delivery settings: set them again." />
          <Input label="Description" name="description" maxLength={2000} value={textOf(values, "description")} />
          {types.data && <Subscriptions types={types.data} selected={listOf(values, "events")} />}
        </>
      )}
    </FormDialog>
  );
}

function Rotate({ of, close, done }: { of: Tagged<Endpoint>; close: () => void; done: (secret: string) => void }) {
  const rotate = async (fields: FormData, header: Once, match: Match) => {
    const body = { overlapHours: Number(valueOf(fields, "overlapHours")) };
    const rotated = await ask(api.POST("/developers/webhooks/endpoints/{id}/rotate-secret", { params: { path: { id: of.body.id }, header }, headers: match, body }));
    done(rotated.secret);
  };
  return (
    <FormDialog title="Rotate the secret?" submit="Rotate" edits={editable(of)} act={rotate} close={close}>
      <p>For a time deliveries carry two signatures, by the old secret and by the new one. Another rotation ends the older secret at once.</p>
      <Input label="Hours with both" name="overlapHours" type="number" min={0} max={168} required value="24" hint="0 to 168. With 0, for a secret that others know, the old one signs nothing from now on." />
    </FormDialog>
  );
}

function SendTest({ id, close, done }: { id: string; close: () => void; done: (delivery: string) => void }) {
  const types = useLoad(listEventTypes, []);
  const send = async (fields: FormData, header: Once) => {
    const sent = await ask(api.POST("/developers/webhooks/endpoints/{id}/test", { params: { path: { id }, header }, body: { type: valueOf(fields, "type") } }));
    done(sent.id);
  };
  const others = (types.data ?? []).map((t) => t.type).filter((type) => type !== "webhook.test");
  return (
    <FormDialog title="Send a test" submit="Send" act={send} close={close}>
      <p>One attempt with the example of a type, whatever the endpoint subscribes to, and also while it is paused.</p>
      <Failed error={types.error} />
      <Field label="Type">
        {(attributes) => (
          <select {...attributes} name="type">
            {["webhook.test", ...others].map((type) => (
              <option key={type}>{type}</option>
            ))}
          </select>
        )}
      </Field>
    </FormDialog>
  );
}

// TestResult follows a test to its end.
function TestResult({ delivery }: { delivery: string }) {
  const [ended, setEnded] = useState(false);
  const { data, error } = useLoad(
    async (from) => {
      const now = await getDelivery(delivery, from);
      setEnded(now.status !== "PENDING");
      return now;
    },
    [delivery],
    ended ? "" : "soon",
  );
  const last = data?.attempts.at(-1);
  return (
    <Panel title="Test" actions={<a href={link(`deliveries/${delivery}`)}>What was sent and answered</a>}>
      <Failed error={error} />
      <div role="status">
        {data && (
          <p>
            <Status of={data.status} /> {data.type}: {last ? `${last.error ?? `answered ${last.responseStatus}`}, after ${milliseconds(last.durationMs)}` : "on its way …"}
          </p>
        )}
      </div>
      <p class="hint">Tests do not count: they change neither the numbers and charts of the endpoint nor its circuit.</p>
    </Panel>
  );
}

function Delete({ of, close }: { of: Tagged<Endpoint>; close: () => void }) {
  const remove = async (_: FormData, __: Once, match: Match) => {
    await ask(api.DELETE("/developers/webhooks/endpoints/{id}", { ...path(of.body.id), headers: match }));
    go(link("endpoints"));
  };
  return (
    <FormDialog title="Delete the endpoint?" submit="Delete" danger edits={editable(of)} act={remove} close={close}>
      <p>
        <strong>{of.body.url}</strong> gets nothing any more, and events that wait for it are cancelled. This cannot be undone.
      </p>
    </FormDialog>
  );
}

function Recover({ id, close, done }: { id: string; close: () => void; done: (recovery: string) => void }) {
  const recover = async (fields: FormData, header: Once) => {
    const time = (name: string) => {
      const text = valueOf(fields, name);
      return text ? { [name]: new Date(text).toISOString() } : {};
    };
    const started = await ask(
      api.POST("/developers/webhooks/endpoints/{id}/recover", { params: { path: { id }, header }, body: { ...time("since"), ...time("until") } }),
    );
    done(started.id);
  };
  return (
    <FormDialog title="Recover what did not arrive" submit="Recover" act={recover} close={close}>
      <p>Every held or failed event of the endpoint is sent again, the oldest first.</p>
      <div class="filters">
        <Input label="Created since" name="since" type="datetime-local" hint="Empty: from the first on." />
        <Input label="Created before" name="until" type="datetime-local" hint="Empty: until now." />
      </div>
    </FormDialog>
  );
}

// Progress follows a recovery to its end.
function Progress({ endpoint, recovery }: { endpoint: string; recovery: string }) {
  const [ended, setEnded] = useState(false);
  const { data, error } = useLoad(
    async (from) => {
      const now: Recovery = await ask(
        from.GET("/developers/webhooks/endpoints/{id}/recoveries/{recoveryId}", { params: { path: { id: endpoint, recoveryId: recovery } } }),
      );
      setEnded(now.status !== "RUNNING");
      return now;
    },
    [recovery],
    ended ? "" : "soon",
  );
  return (
    <Panel title="Recovery">
      <Failed error={error} />
      {data && (
        <div role="status">
          <p>
            <Status of={data.status} /> {count(data.requeuedCount)} of {count(data.matchedCount)} events sent again, of those created before{" "}
            {fullTime(data.until)}. {recovered(data)}
          </p>
          {data.status === "RUNNING" && <progress aria-label="Recovery" />}
        </div>
      )}
    </Panel>
  );
}

// recovered says why a recovery that has ended did not send more.
function recovered({ status, matchedCount, requeuedCount }: Recovery): string {
  if (status === "CANCELLED") return "The endpoint is no longer active, or was deleted: what was left is not sent.";
  if (status !== "COMPLETED") return "";
  if (matchedCount === 0) return "No event of that time was held or had failed.";
  return requeuedCount < matchedCount ? "The others changed meanwhile: they were on their way already, or are no more to be sent." : "How each went is among its deliveries.";
}
