// Package faults is a proxy in front of a DynamoDB-compatible server that
// fails as the real one may: it throttles, hangs, loses answers and does half
// of a batch, at rates that can change while it runs, by a seeded random
// source. A client cannot tell its answers from DynamoDB's own, checksum
// included, and a write is done exactly when the fault's description says so.
//
// The first segment of the path names the client. Each client has its own
// random numbers, which repeat with the seed as long as it sends one request
// after the other.
package faults
