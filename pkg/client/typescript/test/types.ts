// What the types permit and refuse: live.test.mjs compiles this file.
import { all, createClient, parseDelivery, type Entry } from "@commerce-integration/client";

const client = createClient({ baseUrl: "", apiKey: "" });

export async function lists(): Promise<string[]> {
  for await (const { sku } of all(client, "/api/products")) return [sku ?? ""];
  for await (const { last4 } of all(client, "/developers/applications/{id}/api-keys", { path: { id: "" } })) return [last4];
  const deleted: Entry<"/api/deletions">[] = [];
  // @ts-expect-error: which application's keys?
  all(client, "/developers/applications/{id}/api-keys");
  // @ts-expect-error: no list
  all(client, "/api/me");
  // @ts-expect-error: no parameter of this list
  all(client, "/api/products", { query: { paymentStatus: ["PAID"] } });
  return deleted.map(({ kind }) => kind);
}

export function events(): string | null {
  const event = parseDelivery("", {}, "");
  if (event.type === "invoice.paid") return event.data.object.invoiceNumber;
  if (event.type === "product.deleted") return event.data.object.sku;
  // @ts-expect-error: not every event's object has a number
  return event.data.object.invoiceNumber;
}
