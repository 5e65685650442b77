// A client of the Commerce Integration Service. README.md has a program to begin
// with. Its types are made of the service's OpenAPI document.
export { createClient, type Client, type Options } from "./client.js";
export { ServiceError } from "./error.js";
export { all, firstId, type Entry, type ListPath } from "./list.js";
export { parseDelivery, type Event } from "./webhook.js";
export type { components, paths } from "./schema.js";
