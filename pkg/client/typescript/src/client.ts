import createFetchClient, { type Client as FetchClient } from "openapi-fetch";
import { ServiceError } from "./error.js";
import { repeat } from "./retry.js";
import type { components, paths } from "./schema.js";

export type Client = FetchClient<paths, "application/json">;

/** Who the client is and how it sends: by apiKey, by token, or by clientId and clientSecret. */
export interface Options {
  /** Where the service is, its stage included. */
  baseUrl: string;
  /** An application's key for the read API. */
  apiKey?: string;
  /** An access token of a user or an application. */
  token?: string;
  /**
   * An application's, for tokens of its own: the client gets one with the first request, and another when it expires or
   * the service refuses it. When the service gives none, the request throws a ServiceError.
   */
  clientId?: string;
  clientSecret?: string;
  /** The scopes of these tokens; absent: all that they may have. */
  scopes?: string[];
  /**
   * How often a request is repeated at most when there is no answer, or it is 429, 502, 503, 504, or a 409 with
   * Retry-After; absent: 4. A repetition waits as Retry-After says, or half a second and twice as long each time, and ends
   * with the request's signal. A PATCH is repeated after 429 only. A POST has an Idempotency-Key, so that it acts once.
   */
  retries?: number;
  /** Sends a request; absent: the global fetch. */
  fetch?: (request: Request) => Promise<Response>;
}

/** Makes a client whose methods are those of openapi-fetch: each answers { data, error, response }. */
export function createClient(options: Options): Client {
  const baseUrl = options.baseUrl.replace(/\/+$/, "");
  const { retries = 4, fetch = (request: Request) => globalThis.fetch(request) } = options;
  const send = (request: Request) => repeat(request, fetch, retries);
  const accessToken = options.clientId === undefined ? undefined : tokens(options, baseUrl, send);

  return createFetchClient<paths, "application/json">({
    baseUrl,
    querySerializer: { array: { style: "form", explode: false } },
    async fetch(request) {
      if (request.method === "POST" && !request.headers.has("Idempotency-Key")) {
        request.headers.set("Idempotency-Key", crypto.randomUUID());
      }
      if (options.apiKey) request.headers.set("X-API-Key", options.apiKey);
      if (options.token) request.headers.set("Authorization", `Bearer ${options.token}`);
      if (!accessToken) return send(request);

      const token = await accessToken();
      const withToken = (value: string) => {
        const copy = request.clone();
        copy.headers.set("Authorization", `Bearer ${value}`);
        return send(copy);
      };
      const answer = await withToken(token);
      if (answer.status !== 401) return answer;
      await answer.body?.cancel();
      return withToken(await accessToken(token));
    },
  });
}

interface Token {
  value: string;
  until: number;
}

// tokens returns a function that gives an access token that is not the refused one.
function tokens({ clientId, clientSecret, scopes }: Options, baseUrl: string, send: (request: Request) => Promise<Response>) {
  const make = async (): Promise<Token> => {
    const answer = await send(
      new Request(`${baseUrl}/oauth/token`, {
        method: "POST",
        headers: { Authorization: `Basic ${btoa(`${clientId}:${clientSecret}`)}` },
        body: new URLSearchParams({ grant_type: "client_credentials", ...(scopes && { scope: scopes.join(" ") }) }),
      }),
    );
    if (!answer.ok) throw new ServiceError(answer.status, await answer.json().catch(() => ({})));
    const made = (await answer.json()) as components["schemas"]["Token"];
    // Ten seconds early, so that it is good when it arrives.
    return { value: made.access_token, until: Date.now() + (made.expires_in - 10) * 1000 };
  };

  // The requests of one time share one token, also while it is made.
  let current: Promise<Token> | undefined;
  return async (refused?: string): Promise<string> => {
    const known = current;
    const token = await known?.catch(() => undefined);
    if (token && token.value !== refused && Date.now() < token.until) return token.value;
    if (current === known) current = undefined;
    return (await (current ??= make())).value;
  };
}
