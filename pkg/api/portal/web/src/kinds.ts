// The kinds of records, with the names of their lists.
export const kinds = { product: "products", category: "categories", order: "orders", customer: "customers", invoice: "invoices", stock: "stock" } as const;

export type Kind = keyof typeof kinds;
export type List = (typeof kinds)[Kind];

export const lists = Object.values(kinds);
export const readScopes: string[] = lists.map((list) => `${list}:read`).sort();

// aboutOf is what events of a type are about: an order, an endpoint.
export const aboutOf = (type: string): string => (type.startsWith("payment.") ? "order" : type.split(".")[0]!);

// listOf is the list of the records of a kind, if it is one of records.
export const listOf = (kind: string): List | undefined => kinds[kind as Kind];
