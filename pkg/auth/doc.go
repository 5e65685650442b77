// Package auth turns credentials into a principal: user JWTs, API keys and
// the roles, scopes and sites that they carry. A principal is made only from
// a credential that was verified, and travels from the authorizer to the
// functions in API Gateway's context as text. Deciding what a scope permits
// is left to the operations; storing keys is left to the table.
package auth
