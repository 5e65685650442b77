// Package bench measures the service on this machine. It runs the whole of it
// as commerce run does, in a folder of its own, loads data through the records
// queue, and prints what it measured beside the target. Every figure comes from
// code that ran for it, through the sockets, clients and functions that a
// user's requests go through. What one package alone does is measured by the
// Go benchmarks beside its code.
package bench
