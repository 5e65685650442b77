// Package api serves the operations of the three areas (records,
// developers, webhooks): routing, checks in a fixed order, strict bodies and
// query strings, pages of lists, conditional requests, compression and one error
// shape. An operation declares what it takes and answers, and the OpenAPI
// document is made from the same declaration. The gateway's authorizer
// establishes the principal; handlers do the rest.
//
// Checks run in this order: route, credentials, rate, scope and site, size
// and type, idempotency, parameters, then the handler's own: existence,
// precondition, state.
package api
