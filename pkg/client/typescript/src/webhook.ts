import { Webhook } from "standardwebhooks";
import type { webhooks } from "./schema.js";

type Payload<T extends keyof webhooks> = webhooks[T]["post"]["requestBody"]["content"]["application/json"];

/** A delivery's payload; its type says which object it has. The service adds types: ignore the others. */
export type Event = { [T in keyof webhooks]: Payload<T> & { type: T } }[keyof webhooks];

/**
 * Verifies the headers and the body of a delivery, as it was received, by the endpoint's secret, and returns its payload.
 *
 * Throws an error when another secret signed it, when it was changed, and when its timestamp is more than five minutes
 * off. A delivery can come twice: drop a repeated header webhook-id. While you change over to a new secret, try both.
 */
export function parseDelivery(
  secret: string,
  headers: Headers | Record<string, string | string[] | undefined>,
  body: string,
): Event {
  const given = headers instanceof Headers ? Object.fromEntries(headers) : headers;
  return new Webhook(secret).verify(body, given as Record<string, string>) as Event;
}
