// Package ops does the work of the operator's commands: it looks into queues,
// moves and replays messages, and compares and rebuilds the index of lists.
// Flags, output and exit codes belong to the commands. Every operation may be
// interrupted and run again; none loses a message. Unlike the functions, it
// receives from queues itself, so it uses the SQS client beside package
// sqsqueue.
package ops
