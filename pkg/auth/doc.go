// Package auth turns credentials (user JWTs, API keys and applications' own
// tokens) into a principal with its scopes, sites and rate limit. It makes a
// principal only from a credential that it verified. The authorizer hands the
// principal to the other functions as text in API Gateway's context. Operations
// decide what a scope permits, and the table stores the keys.
//
// API Gateway keeps an answer about a bearer token for minutes where developers'
// and webhook resources are managed. A function does not trust that it is about
// its request, but compares the digest of the credential that was judged, by
// [PrincipalOf]. A suspension must act within 5 s, and so must its end. There the authorizer only verifies an application's token, and
// the function itself looks at the application, by [Applications]. The
// alternative, an authorizer that is asked every time, would cost every user's
// request an invocation more.
//
// Suspension, revocation and deletion act within 5 s: a reading of a key or an
// application is believed for 3 s, and is eventually consistent, which
// is usually less than a second behind the table; AWS names no bound. What such a
// read lacks altogether, and what a young token was made with, is read again,
// strongly consistent, so that a new key or token works at once.
package auth
