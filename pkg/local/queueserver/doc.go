// Package queueserver is the queue service of the local runner: an [http.Handler] that speaks the SQS protocol (AWS
// JSON 1.0), so that the same code and the same SDK that use Amazon SQS in AWS use real queues on a developer's
// machine.
//
// It has the semantics of standard queues: visibility, delays, retention, redrive, move tasks, fair groups, limits and
// typed errors. A killed process loses nothing that it has acknowledged, receive counts and deadlines included; a state
// that was damaged on disk is an error of [Open], never a silent loss. There are no FIFO queues, signatures and access
// policies. Every message is in memory as well as on disk, so a backlog of gigabytes belongs elsewhere.
//
// # Durability
//
// Every change is a record in an append-only journal with checksums, written before it is acknowledged. A write is handed
// to the operating system, which keeps it when the process is killed; a power failure or a crash of the machine may lose
// the last seconds. When the journal has grown by [Config.CompactBytes] and to twice the length of the live state, a
// journal of the live state alone replaces it, while requests wait. When a write fails (a full disk), every later request
// fails too, and the state is that of the last complete write at the next [Open].
//
// # Where it differs from Amazon SQS
//
// Where Amazon SQS is approximate (counts, order, messages received after a purge) this server is exact. Fair queues
// there set back a group that holds more than a tenth of the messages in flight; here every receive takes from the
// group with the fewest messages in flight, of several from one with a small backlog, one after the other, and messages
// without a group share one. ApproximateAgeOfOldestMessage, in AWS a metric of CloudWatch, is here an attribute of a
// queue that GetQueueAttributes returns when it is named.
//
// # Messages in flight
//
// Of a queue at most [Config.MaxInFlight] messages may be received and neither deleted nor visible again, 120,000 as in
// Amazon SQS, where that is an approximate limit. At the limit a long poll waits until a message leaves flight, and
// returns none when its time is over, and a short poll fails with OverLimit; below it a receive returns at most as many
// messages as the limit still allows. Delayed messages are not in flight.
package queueserver
