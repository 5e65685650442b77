// Package queueserver is the queue service of the local runner: an [http.Handler] that speaks the SQS protocol (AWS JSON
// 1.0), so that the same code and the same SDK that use Amazon SQS in AWS use real queues on a developer's machine.
// It promises the semantics of standard queues (visibility, delays, retention, redrive, move tasks, fair groups, limits and
// typed errors) and that nothing it has acknowledged is lost when its process is killed, receive counts and deadlines
// included; a state that was damaged on disk is an error of [Open], never a silent loss.
// It leaves out FIFO queues, signatures and access policies, and keeps every message in memory beside the disk, so that a
// backlog of gigabytes belongs elsewhere.
//
// # Durability
//
// Every change is a record in an append-only journal with checksums, written before it is acknowledged; concurrent
// requests share one write. A write is handed to the operating system, which keeps it when the process is killed; a power
// failure or a crash of the machine may lose the last seconds unless [Config.Sync] is set, which costs a disk flush for
// each group of requests. When the journal outgrows [Config.CompactBytes] and the last snapshot, a snapshot of the live state
// replaces it while requests go on. When a write fails (a full disk), every later request fails too, and the state is that of
// the last complete write at the next [Open].
//
// # Where it differs from Amazon SQS
//
// Where Amazon SQS is approximate (counts, order, who gets what after a purge) this server is exact. Fair queues there
// set back a group that holds more than a tenth of the messages in flight; here every receive takes from the group with
// the fewest messages in flight, of several from one with a small backlog, in turn, and messages without a group share
// one. A queue's ApproximateAgeOfOldestMessage, which there is a metric of CloudWatch, is here an attribute for who asks
// for it by name.
//
// # Messages in flight
//
// Of a queue at most [Config.MaxInFlight] messages may be received and neither deleted nor visible again, 120,000 as in
// Amazon SQS, where that is an approximate limit. Past it a long poll brings nothing and no error, as long as it lasts or
// until a place becomes free, and a short poll fails with OverLimit; a receive below it brings no more than there is room
// for. Delayed messages are not in flight.
package queueserver
