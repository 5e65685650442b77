// Package auth turns credentials (user JWTs and API keys) into a principal with
// its scopes, sites and rate limit. It makes a principal only from a credential
// that it verified. The authorizer hands the principal to the other functions
// as text in API Gateway's context. Operations decide what a scope permits, and
// the table stores the keys.
package auth
