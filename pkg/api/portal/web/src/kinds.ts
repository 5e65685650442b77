// The kinds of records, with the names of their lists.
export const kinds = { product: "products", category: "categories", order: "orders", customer: "customers", invoice: "invoices" } as const;

export type Kind = keyof typeof kinds;
export type List = (typeof kinds)[Kind];

export const lists = Object.values(kinds);
export const readScopes: string[] = lists.map((list) => `${list}:read`).sort();

// listOf is the list of the records that events of a resource are about, if they are about records.
export const listOf = (resource: string): List | undefined => (resource === "payment" ? "orders" : kinds[resource as Kind]);
