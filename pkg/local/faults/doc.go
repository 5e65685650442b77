// Package faults is a proxy in front of a DynamoDB-compatible server that
// fails as the real one may: it throttles, hangs, loses answers, answers with
// what was true a moment ago and does batches by halves, at rates that are
// set while it runs, by a seeded random source. It promises answers that a
// client cannot tell from DynamoDB's own, checksum included, that a write is
// done exactly when the fault's description says so, and that a stale answer
// is what the table held at some moment within the window. Starting the
// server behind it, and what a client makes of the faults, is left to others.
//
// Clients are told apart by the first segment of the path: each has random
// numbers of its own, which repeat with the seed as long as it sends one
// request after the other, and can be crashed on its own.
package faults
