// What several pages say of webhooks.
import { api, ask, Refusal, tagged, type Application, type AttemptRequest, type Client, type Delivery, type Endpoint, type EndpointStats, type EventType } from "./api";
import { fullTime } from "./format";

export const listApplications = (): Promise<Application[]> =>
  ask(api.GET("/developers/applications", { params: { query: { limit: 100 } } })).then((page) => page.data);

export const listEndpoints = (from: Client = api): Promise<Endpoint[]> =>
  ask(from.GET("/developers/webhooks/endpoints", { params: { query: { limit: 100 } } })).then((page) => page.data);

export const listEventTypes = (): Promise<EventType[]> =>
  ask(api.GET("/developers/webhooks/event-types", { params: { query: { limit: 100 } } })).then((page) => page.data);

// Sent is a delivery with the body that is sent: the payload, byte for byte.
export type Sent = Delivery & { body: string };

// getDelivery takes the body from the text of the answer: numbers that were read and
// written again may be other bytes.
export async function getDelivery(id: string, from: Client = api): Promise<Sent> {
  const text: string = await ask(from.GET("/developers/webhooks/events/{id}", { params: { path: { id } }, parseAs: "text" }));
  const name = ',"payload":';
  const [start, end] = [text.indexOf(`${name}{`), text.lastIndexOf(',"createdAt":')];
  return { ...(JSON.parse(text) as Delivery), body: start < 0 ? "" : text.slice(start + name.length, end) };
}

// linesOf are headers as HTTP writes them.
export const linesOf = (headers: Record<string, string>): string[] => Object.entries(headers).map(([name, value]) => `${name}: ${value}`);

// curlOf is the command that repeats a request.
export function curlOf(request: AttemptRequest, body: string): string {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  const headers = linesOf(request.headers).map((line) => `-H ${quoted(line)}`);
  return [`curl -X POST ${quoted(request.url)}`, ...headers, `--data-raw ${quoted(body)}`].join(" \\\n  ");
}

// getAlerts is where an application's alerts go; null when they go nowhere.
export const getAlerts = (id: string) =>
  tagged(api.GET("/developers/applications/{id}/alerts", { params: { path: { id } } })).catch((why) => {
    if (why instanceof Refusal && why.status === 404) return { body: null, tag: "" };
    throw why;
  });

// Called is what people call an endpoint, as far as that is kept.
export interface Called {
  name?: string;
  deleted: boolean;
}

// calledOf is what the endpoint of a delivery is called. Of a deleted one only the URL is
// kept that its deliveries were sent to.
export async function calledOf(d: Delivery): Promise<Called> {
  try {
    const endpoint = await ask(api.GET("/developers/webhooks/endpoints/{id}", { params: { path: { id: d.endpointId } } }));
    return { name: endpoint.description || endpoint.url, deleted: false };
  } catch (why) {
    if (!(why instanceof Refusal && why.status === 404)) throw why;
  }
  const { attempts } = await getDelivery(d.id);
  return { name: attempts.filter((a) => a.request).at(-1)?.request?.url, deleted: true };
}

// nameOf is what people call the endpoint, of those that there are.
export function nameOf(endpoints: Endpoint[], id: string): string | undefined {
  const endpoint = endpoints.find((e) => e.id === id);
  return endpoint?.description || endpoint?.url;
}

// shown is the delivery as it stands. One of a deleted endpoint is cancelled, though the
// service writes that only when the delivery is due.
export const shown = (d: Delivery, deleted: boolean): Delivery =>
  deleted && (d.status === "PENDING" || d.status === "HELD") ? { ...d, status: "CANCELLED", nextAttemptAt: null } : d;

// groupsOf are the resources of types: order.* of order.created.
export const groupsOf = (types: EventType[]): string[] => [...new Set(types.map((t) => `${t.type.split(".")[0]}.*`))];

// maxStats is of how many endpoints a page asks for statistics, one request each.
export const maxStats = 10;

export const getStats = (e: Endpoint, from: Client = api): Promise<EndpointStats> =>
  ask(from.GET("/developers/webhooks/endpoints/{id}/stats", { params: { path: { id: e.id } } }));

// statesOf are the states of endpoints by their ids. Of those whose last attempt failed
// it asks whether the circuit is open; beyond maxStats of them it only says that they fail.
export async function statesOf(endpoints: Endpoint[]): Promise<Map<string, string>> {
  const states = new Map(endpoints.map((e) => [e.id, e.status === "ACTIVE" && failed(e) ? "FAILING" : (e.status as string)]));
  const asked = endpoints.filter((e) => states.get(e.id) === "FAILING").slice(0, maxStats);
  for (const [i, stats] of (await Promise.all(asked.map((e) => getStats(e).catch(() => undefined)))).entries()) {
    const state = stateOf(asked[i]!, stats);
    if (state !== "ACTIVE") states.set(asked[i]!.id, state);
  }
  return states;
}

// stateOf is an endpoint's status, or that an active one's circuit is open.
export const stateOf = (e: Endpoint, stats?: EndpointStats): string => (e.status === "ACTIVE" && stats?.circuit?.state === "OPEN" ? "CIRCUIT_OPEN" : e.status);

// failed tells that the last attempt at the endpoint failed.
const failed = (e: Endpoint) => e.lastFailureAt !== null && (e.lastSuccessAt === null || e.lastFailureAt > e.lastSuccessAt);

// failing says why an endpoint needs attention; "" if it does not.
export function failing(e: Endpoint, stats?: EndpointStats): string {
  if (e.status === "DISABLED") return "Disabled by the service after it failed for too long, or answered 410.";
  if (e.status === "PAUSED") return "Paused: its events are held.";
  const last = failed(e) ? `The last attempt failed: ${e.lastFailureReason ?? "no reason is known"}` : "";
  const circuit = stats?.circuit;
  if (circuit?.state !== "OPEN") return last;
  return `Circuit open since ${fullTime(circuit.openedAt)}${circuit.nextProbeAt ? `, next probe ${fullTime(circuit.nextProbeAt)}` : ""}: its events are held. ${last}`;
}

// reasonOf explains how a delivery stands.
export function reasonOf(d: Delivery): string {
  const last = d.attempts.at(-1);
  const failure = last?.error ? ` The last attempt: ${last.error}.` : "";
  switch (d.status) {
    case "DELIVERED":
      return `The receiver answered ${last?.responseStatus ?? "2xx"} to attempt ${d.attemptCount}.`;
    case "FAILED":
      return `${d.attemptCount === 1 ? "Its only attempt" : `Each of its ${d.attemptCount} attempts`} failed; nothing is tried any more.${failure} Send it again once the receiver works.`;
    case "CANCELLED":
      return "Its endpoint or application was deleted before it arrived.";
    case "PENDING":
      return d.attemptCount === 0 ? "It waits for its first attempt." : `Attempt ${d.attemptCount} failed; the next one is planned.${failure}`;
    case "HELD":
      return held[d.heldReason ?? ""] ?? `It is held: ${d.heldReason}.`;
  }
  return "";
}

const held: Record<string, string> = {
  PAUSED: "Its endpoint is paused. Activate the endpoint, then recover what was held.",
  DISABLED: "The service disabled its endpoint after too many failures. Activate the endpoint, then recover what was held.",
  CIRCUIT_OPEN: "Its endpoint failed so often that only probes are sent. The first success sends everything held, the oldest first. Send this one again to probe the endpoint at once.",
  SUSPENDED: "Its application is suspended. Activate the application, then recover the endpoint.",
};

