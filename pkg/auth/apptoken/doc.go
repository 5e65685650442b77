// Package apptoken makes and checks the access tokens of applications: JWTs by
// RFC 9068 that the service itself signs with ES256. It derives the signing
// keys, publishes their public halves before it signs with them, and verifies
// a token with published keys only. It promises that a token names a key that
// the table already had when the token was made. Package auth decides what a
// token's application may do, and the operations of package oauth who gets one.
//
// # Signing keys
//
// A signing key follows from a secret's text, so that Secrets Manager can
// generate it and a rotation is one command. The derivation is fixed, because
// tokens and published keys outlive the process that made them:
//
//	okm    = HKDF-SHA-256(secret: the text in UTF-8, at least 32 bytes; salt: none;
//	         info: "commerce-integration application-token ES256 v1"; 48 bytes)
//	scalar = okm as a big-endian integer mod (n - 1), plus 1; n is the order of P-256
//	kid    = "cis-" + base64url, unpadded, of the public key's JWK thumbprint (RFC 7638, SHA-256)
//
// Sixteen bytes more than the scalar's make it unbiased (FIPS 186-5, A.2.1). The
// alternative, a key pair that the service generates and writes to the secret,
// would need a permission to write it and a lock between those who do.
//
// Two keys are live: that of the secret's current version signs, those of the
// current and the previous version verify. A rotation therefore ends no token,
// and two rotations end every token that was signed before the first.
package apptoken
