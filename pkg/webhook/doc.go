// Package webhook is the domain of deliveries: endpoints and what they
// subscribe to, the history of events row by row, payloads, signatures, and
// the schedule of retries. Its functions compute the next state from the
// present one, a time and an outcome; they never read a clock, a table or a
// network themselves, and the same inputs give the same identifiers and
// bytes everywhere. Keeping the states, sending and asking are left to the
// table, the worker and the operations.
//
// # A row
//
// A row is one event for one endpoint, the API's WebhookEvent. It is PENDING
// while an attempt lies ahead, HELD while its endpoint must not be asked,
// and DELIVERED, FAILED or CANCELLED otherwise. A PENDING row is carried to
// its next attempt in one of two ways: by the queue message that it names as
// its carrier, or, when the wait is longer than a queue allows or the
// message may not have been sent, by its due mark, the time at which the
// sweeper looks at it.
package webhook
