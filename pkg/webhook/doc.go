// Package webhook is the domain of deliveries: endpoints and what they
// subscribe to, the history of events row by row, payloads, signatures, the
// schedule of retries, and how endpoints do. Its functions compute the next state from the
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
//
// # How an endpoint does
//
// The outcomes of attempts are counted in tallies, of which an endpoint has a
// few, each with one writer at a time, so that the rows of a batch and what
// counts them are written together. Joined, the tallies are the endpoint's
// counters and its health: the failed attempts in a row, and how those of the
// last five minutes went. The health decides what the endpoint's condition
// must become: whether its circuit opens, which holds events but for a probe
// now and then, which lane its deliveries take, and whether it is disabled.
package webhook
