import type { components } from "./schema.js";

/** An answer that is an error. */
export class ServiceError extends Error {
  constructor(
    readonly status: number,
    /** What the service said of it; empty when something else answered. */
    readonly problem: Partial<components["schemas"]["Error"] & components["schemas"]["TokenError"]>,
  ) {
    super(problem.message ?? problem.error_description ?? `the service answered ${status}`);
    this.name = "ServiceError";
  }
}
