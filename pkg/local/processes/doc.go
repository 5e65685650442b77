// Package processes runs functions as Lambda does: each instance is a process of its own from the function's real
// binary, behind the Lambda Runtime API. It promises what Lambda does to a function: cold starts, one invocation at a
// time in an instance and several instances side by side, deadlines past which an instance is killed, a crash that
// fails its invocation and nothing else, and no environment but the function's own; no process outlives the caller's.
// Who invokes what with which events, limits of memory and CPU, and what the functions may reach are left to others.
//
// The Runtime API is that of 2018-06-01, as https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html says.
package processes
