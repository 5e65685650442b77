// Package idempotency answers a repeated request as the first one was
// answered. A client names its request by a key of its own choice. While the
// request runs, its record is locked; a success is kept in the record for
// [Retention], sealed, since answers hold secrets. Any other answer frees the
// lock at once, and the lock of an instance that died ends after [LockTime].
//
// A store that makes or changes something in a transaction keeps the answer in the
// same transaction: then that is done once whatever dies when. An answer that is
// kept after its action leaves a gap: an instance that dies between the
// two makes a repetition, once the lock has ended, run again.
//
// Package api says what a key, a principal and a request's content are.
package idempotency
