// Package account holds developer applications and their API keys: shapes,
// input with its bounds, states, secrets and the format of a key. It
// promises that a secret exists in full only in the value that its creation
// returns, and that every shape is what the API answers, field by field.
// Keeping them, and the limits that need a count, is left to the table;
// turning a key into a principal to package auth.
package account
