// Package queueserver is the queue service of the local runner: an [http.Handler] that speaks the SQS protocol (AWS
// JSON 1.0), so that the same code and the same SDK that use Amazon SQS in AWS use real queues on a developer's
// machine.
//
// It has the semantics of standard queues: visibility, delays, retention, redrive, move tasks, fair groups, limits and
// typed errors. A killed process loses nothing that it has acknowledged, receive counts and deadlines included. Every
// message is in memory as well as on disk, so a backlog of gigabytes belongs elsewhere. One process at a time may serve
// a directory; its caller sees to that.
//
// # Durability
//
// Every change is a line of JSON in an append-only journal, written before it is acknowledged. A write is handed to the
// operating system, which keeps it when the process is killed; a power failure or a crash of the machine may lose the
// last seconds. [Open] drops a last line that a kill has cut short, and fails on any other line that it cannot read; a
// line has no checksum. Open also replaces the journal by one of the live state alone. Until the next Open the journal
// grows with each change. When a write fails (a full disk), every later request fails too, and the state is that of the
// last complete write at the next Open.
//
// # Where it differs from Amazon SQS
//
// It has the operations, attributes and checks that the service and its tools use. There are no FIFO queues, policies,
// encryption, tags, purges, deletions of queues and limit of messages in flight, and no checksums of message attributes.
// A move task needs its destination, knows no rate, ends with the process, and only a queue's latest one is listed. The order of
// messages within a group is that of their arrival again after a restart. A numeric parameter of 0 counts as not sent, as
// the SDK for Go sends it.
//
// Where Amazon SQS is approximate (counts, order) this server is exact. Fair queues there set back a group that holds
// more than a tenth of the messages in flight; here every receive takes from the group with the fewest messages in
// flight, of several from one with a small backlog, one after the other, and messages without a group share one.
package queueserver
