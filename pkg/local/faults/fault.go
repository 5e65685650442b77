package faults

// Fault is one way in which a request may fail.
type Fault string

// The faults. Those that end a request exclude each other, and the first of
// this order wins. A request may be delayed and partly processed at once.
const (
	// Delay answers late, by up to Config.MaxDelay.
	Delay Fault = "delay"
	// LostRequest cuts the connection before anything is done.
	LostRequest Fault = "lostRequest"
	// Timeout does nothing and holds the connection until the client gives up,
	// at most Config.MaxHang.
	Timeout Fault = "timeout"
	// Throttle refuses with ProvisionedThroughputExceededException or
	// ThrottlingException, a transaction also as cancelled for that reason.
	Throttle Fault = "throttle"
	// InternalError answers 500 and does nothing.
	InternalError Fault = "internalError"
	// Conflict refuses a write with TransactionConflictException, a
	// transaction with TransactionCanceledException and the reason of one of
	// its items.
	Conflict Fault = "conflict"
	// FalseError does the write and answers 500.
	FalseError Fault = "falseError"
	// LostAnswer carries out the request, and cuts the connection before the
	// answer or in the middle of it. The SDK tries again.
	LostAnswer Fault = "lostAnswer"
	// Unprocessed leaves some items of a batch undone and returns them so;
	// statements of a batch fail, some or all, as throttled.
	Unprocessed Fault = "unprocessed"
)

// All lists the faults.
func All() []Fault {
	return []Fault{Delay, LostRequest, Timeout, Throttle, InternalError, Conflict, FalseError, LostAnswer, Unprocessed}
}

// Rates says how likely each fault is, from 0 to 1. Faults that it does not
// name do not happen.
type Rates map[Fault]float64

// Every returns the same rate for all of these faults, or without any for all
// faults.
func Every(rate float64, of ...Fault) Rates {
	if len(of) == 0 {
		of = All()
	}
	rates := Rates{}
	for _, f := range of {
		rates[f] = rate
	}
	return rates
}

// operation is what the proxy needs to know of one operation of the protocol.
type operation struct {
	writes, batch, transaction bool
	statements                 bool // each of which may fail on its own
}

// operations are those that work on items. All others, such as those on
// tables and streams, pass through untouched.
var operations = map[string]operation{
	"GetItem":            {},
	"Query":              {},
	"Scan":               {},
	"BatchGetItem":       {batch: true},
	"TransactGetItems":   {transaction: true},
	"PutItem":            {writes: true},
	"UpdateItem":         {writes: true},
	"DeleteItem":         {writes: true},
	"BatchWriteItem":     {writes: true, batch: true},
	"TransactWriteItems": {writes: true, transaction: true},
	// The statements of a batch either all read or all write; the service has
	// none that read.
	"BatchExecuteStatement": {writes: true, batch: true, statements: true},
}

// can reports whether DynamoDB may answer the operation so.
func (o operation) can(f Fault) bool {
	switch f {
	case FalseError:
		return o.writes
	case Conflict:
		return o.transaction || o.writes && !o.batch
	case Unprocessed:
		return o.batch
	default:
		return true
	}
}
