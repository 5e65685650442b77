package faults

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
	// All of a batch read or all write; reading is not expected.
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
	case StaleRead:
		return !o.writes && !o.transaction
	default:
		return true
	}
}
