// Package bench measures the service on this machine: it runs the whole of it
// as commerce run does, in a folder of its own, loads data through the records
// queue, and prints what it measured beside what was aimed at. It promises
// that every figure comes from code that ran for it, through the same sockets,
// clients and functions that a user's requests go through, and that nothing is
// left behind. What a figure ought to be, and on which machine, is stated with
// it and left to the reader to judge.
package bench
