// The client of the service's API, made from the types of its OpenAPI document.
import createClient, { type Client as ClientOf, type Middleware } from "openapi-fetch";
import type { components, paths } from "./schema";

type Schemas = components["schemas"];
export type Me = Schemas["Me"];
export type Application = Schemas["DeveloperApplication"];
export type Grant = Schemas["Grant"];
export type ApiKey = Schemas["ApiKey"];
export type Endpoint = Schemas["WebhookEndpoint"];
export type Delivery = Schemas["WebhookEvent"];
export type Attempt = Schemas["Attempt"];
export type AttemptRequest = Schemas["AttemptRequest"];
export type EventType = Schemas["WebhookEventType"];
export type Recovery = Schemas["WebhookRecovery"];
export type DeliverySettings = Schemas["WebhookDeliverySettings"];
export type DeliveryPreview = Schemas["WebhookDeliveryPreview"];
export type PreviewedEvent = Schemas["PreviewedEvent"];
export type Change = Schemas["Change"];
export type AuditEntry = Schemas["AuditEntry"];
export type FailedRequest = Schemas["FailedRequest"];
export type Receipt = Schemas["Receipt"];
export type FileRecords = Schemas["FileRecords"];
export type Refused = Schemas["Refusal"];
export type Source = Schemas["WebhookSource"];
export type EndpointStats = Schemas["WebhookEndpointStats"];
export type StatsPoint = Schemas["StatsPoint"];
export type UsageDay = Schemas["UsageDay"];
export type Trace = Schemas["WebhookTrace"];
export type TracedEndpoint = Schemas["TracedEndpoint"];
export type Meta = Schemas["Meta"];
export type Problem = Schemas["Error"];

// base is the path under which the service is: "" or, for instance, "/prod".
export const base = document.documentElement.dataset.base ?? "";

// Rate is what the last answer told of the rate limit.
export interface Rate {
  limit: number;
  remaining: number;
}

let credential: (leave: boolean) => Promise<string> = async () => "";

// identify has the function called for the credential of each request: "" for none. Some can
// only be renewed elsewhere; leave permits to go there.
export function identify(by: typeof credential) {
  credential = by;
}

let onRate: (rate: Rate) => void = () => {};
let onRefused: (problem: Problem) => void = () => {};

// observe has the functions called with what answers tell beside their bodies:
// the rate limit, and that the credential is no longer accepted.
export function observe(rate: typeof onRate, refused: typeof onRefused) {
  onRate = rate;
  onRefused = refused;
}

export type Client = ClientOf<paths, "application/json">;

// clientWith asks the service with the user's credential; the middleware sees a request before that.
export function clientWith(...before: Middleware[]): Client {
  const client = createClient<paths, "application/json">({ baseUrl: location.origin + base });
  client.use(...before, credentials);
  return client;
}

const credentials: Middleware = {
  async onRequest({ request }) {
    // Nothing leads away from a change that is being sent, or from a form that is open.
    const sent = await credential(request.method === "GET" && !document.querySelector("dialog[open]"));
    if (sent.startsWith("cis_")) request.headers.set("X-API-Key", sent);
    else if (sent) request.headers.set("Authorization", `Bearer ${sent}`);
    return request;
  },
  onResponse({ response }) {
    const limit = response.headers.get("X-RateLimit-Limit");
    if (limit) onRate({ limit: Number(limit), remaining: Number(response.headers.get("X-RateLimit-Remaining")) });
  },
};

export const api = clientWith();

// Refusal is an answer that is an error.
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly problem: Partial<Problem>,
  ) {
    super(problem.message ?? `the service answered ${status}`);
  }
}

type Answer<T> = Promise<{ data?: T; error?: unknown; response: Response }>;

// ask waits for an answer and returns its body. It throws a Refusal for an
// error, and an Error with words for people when there is no answer.
export async function ask<T>(answer: Answer<T>): Promise<T> {
  let got;
  try {
    got = await answer;
  } catch {
    throw new Error("the service cannot be reached; it may be restarting");
  }
  if (got.response.ok) return got.data as T;
  const problem = (got.error ?? {}) as Problem;
  if (got.response.status === 401) onRefused(problem);
  throw new Refusal(got.response.status, problem);
}

// Tagged is a state that was read. Its tag names it in the If-Match of a change,
// which is refused with 412 when there is another by then; "" where nothing is.
export interface Tagged<T> {
  body: T;
  tag: string;
}

export type Match = { "If-Match"?: string };

export async function tagged<T>(answer: Answer<T>): Promise<Tagged<T>> {
  const body = await ask(answer);
  return { body, tag: (await answer).response.headers.get("ETag") ?? "*" };
}

// Once names a request, so that a repetition of it changes nothing.
export interface Once {
  "Idempotency-Key": string;
}

export const once = (): Once => ({ "Idempotency-Key": crypto.randomUUID() });
