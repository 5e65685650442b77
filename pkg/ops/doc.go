// Package ops does the work of the operator's commands: it looks into queues,
// moves and replays messages, compares and rebuilds the index of lists, and
// exports, imports and erases what an organization has. Flags, output and exit
// codes belong to the commands. Every operation may be interrupted and run again;
// none but an erasure loses a message. Unlike the functions, it receives from
// queues itself, so it uses the SQS client beside package queue.
package ops
