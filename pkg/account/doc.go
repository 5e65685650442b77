// Package account holds developer applications and their API keys: shapes,
// input with its bounds, states, secrets and the format of a key. Every shape is
// what the API answers, field by field, and only the value that a creation
// returns holds a secret in full. The table stores applications and keys and
// enforces limits that need a count; package auth turns a key into a principal.
package account
