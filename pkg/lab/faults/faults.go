// Package faults is a proxy in front of a DynamoDB-compatible server. It throttles, hangs, loses requests and answers,
// and does batches by halves, at rates that may change while it runs, and delays requests. Its answers look like
// DynamoDB's, and a write is done exactly when the fault's description says so. It is a proxy because functions are
// processes: it reaches them by the endpoint in their environment.
package faults

import "math/rand/v2"

// Fault is one way in which a request fails.
type Fault string

// The faults. At most one of them befalls a request, the first of this order.
const (
	LostRequest   Fault = "lostRequest"   // nothing is done, and the connection is cut
	Timeout       Fault = "timeout"       // nothing is done, and no answer comes until the client gives up
	Throttle      Fault = "throttle"      // nothing is done; a transaction may be cancelled for that reason
	InternalError Fault = "internalError" // nothing is done, and the answer is 500
	Conflict      Fault = "conflict"      // nothing is done; a transaction names one of its items
	FalseError    Fault = "falseError"    // the write is done, and the answer is 500
	LostAnswer    Fault = "lostAnswer"    // the request is done, and the connection is cut
	Unprocessed   Fault = "unprocessed"   // a batch is done in part; statements of it fail as throttled
)

var all = []Fault{LostRequest, Timeout, Throttle, InternalError, Conflict, FalseError, LostAnswer, Unprocessed}

// Rates says how likely each fault is, from 0 to 1. The faults that it does not name do not happen.
type Rates map[Fault]float64

// Every returns the same rate for each of the faults.
func Every(rate float64, of ...Fault) Rates {
	rates := Rates{}
	for _, f := range of {
		rates[f] = rate
	}
	return rates
}

// draw chooses the fault of a request, "" for none. It takes the same numbers whatever the rates are.
func (r Rates) draw(o operation, random *rand.Rand) (drawn Fault) {
	for _, f := range all {
		if hit := random.Float64() < r[f]; hit && drawn == "" && o.can(f) {
			drawn = f
		}
	}
	return drawn
}

// operation is what the proxy needs to know of an operation.
type operation struct{ writes, batch, transaction bool }

// statements is the batch whose parts fail with errors of their own.
const statements = "BatchExecuteStatement"

// operations are those that functions use on items. All others pass: a service's start and its reading of the stream.
var operations = map[string]operation{
	"GetItem":            {},
	"Query":              {},
	"Scan":               {},
	"BatchGetItem":       {batch: true},
	"PutItem":            {writes: true},
	"UpdateItem":         {writes: true},
	"DeleteItem":         {writes: true},
	"TransactWriteItems": {writes: true, transaction: true},
	statements:           {writes: true, batch: true}, // the service has none that read
}

// can reports whether DynamoDB may fail the operation so.
func (o operation) can(f Fault) bool {
	switch f {
	case FalseError:
		return o.writes
	case Conflict:
		return o.transaction || o.writes && !o.batch
	case Unprocessed:
		return o.batch
	}
	return true
}
