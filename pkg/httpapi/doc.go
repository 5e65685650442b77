// Package httpapi is the HTTP plumbing that the three areas share: routing,
// checks in a fixed order, strict bodies and query strings, conditional
// requests, compression and one error shape. An operation declares what it
// takes and answers, and the same declaration makes the OpenAPI document.
// What an operation does is left to its handler; who asks is established by
// the gateway's authorizer.
//
// Checks run in this order: route, credentials, rate, scope and site, size
// and type, parameters, then the handler's own: existence, precondition,
// state.
package httpapi
