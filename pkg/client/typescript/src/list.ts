import type { Client } from "./client.js";
import { ServiceError } from "./error.js";
import type { components, paths } from "./schema.js";

type PageOf<P extends keyof paths> = paths[P] extends {
  get: { responses: { 200: { content: { "application/json": infer Answer } } } };
}
  ? Answer extends { data: unknown[]; meta: components["schemas"]["Meta"] }
    ? Answer
    : never
  : never;

/** The path of a list that has pages. */
export type ListPath = { [P in keyof paths]: [PageOf<P>] extends [never] ? never : P }[keyof paths];

/** What a list is of. */
export type Entry<P extends ListPath> = PageOf<P>["data"][number];

type Parameters<P extends ListPath> = paths[P] extends { get: { parameters: infer Given } } ? Given : never;

/** Comes before every id: as afterId of the query it begins a walk by id, which changes cannot disturb. */
export const firstId = "00000000-0000-0000-0000-000000000000";

/**
 * Walks through every page of a list, 100 entries at a time unless the query has a limit. Throws a ServiceError when a page
 * is refused.
 */
export async function* all<P extends ListPath>(
  client: Client,
  path: P,
  ...[params]: Parameters<P> extends { path: object } ? [Parameters<P>] : [Parameters<P>?]
): AsyncGenerator<Entry<P>, void, undefined> {
  const given = (params ?? {}) as { query?: Record<string, unknown> };
  let query: Record<string, unknown> | undefined = { limit: 100, ...given.query };
  while (query) {
    // Each path takes parameters of its own, which the signature holds to it.
    const { data, error, response } = await client.GET(path as "/api/orders", { params: { ...given, query } as never });
    if (!data) throw new ServiceError(response.status, error ?? {});
    yield* data.data as Entry<P>[];
    const next = /<[^<>?]*\?([^<>]*)>; rel="next"/.exec(response.headers.get("Link") ?? "");
    query = next ? Object.fromEntries(new URLSearchParams(next[1])) : undefined;
  }
}
