// Package ops does the work of the operator's commands: it looks into queues,
// moves and replays messages, compares and rebuilds the index of lists, and
// erases organizations and customers. Flags, output and exit codes belong to the
// commands. Every operation may be interrupted and run again; only an erasure
// deletes messages. Unlike the functions, it receives from
// queues itself, so it uses the SQS client beside package queue.
package ops
