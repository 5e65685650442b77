// Package meter counts the read and write units that a client's calls of
// DynamoDB consume, as the table itself tells them, by operation and kind of
// item. It is for benchmarks and the figures that they print; what a unit
// costs is left to them.
package meter

import (
	"context"
	"maps"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// Units are what calls consumed.
type Units struct {
	Calls  int
	Reads  float64 // read units: 4 KB, strongly consistent
	Writes float64 // write units: 1 KB
}

// Sub returns what was consumed since an earlier reading.
func (u Units) Sub(earlier Units) Units {
	return Units{Calls: u.Calls - earlier.Calls, Reads: u.Reads - earlier.Reads, Writes: u.Writes - earlier.Writes}
}

// Add returns the sum.
func (u Units) Add(v Units) Units {
	return Units{Calls: u.Calls + v.Calls, Reads: u.Reads + v.Reads, Writes: u.Writes + v.Writes}
}

// Use is one way of using the table.
type Use struct {
	Operation string // such as "PutItem"
	Item      string // the kind of item, one of the constants
}

// Meter sums the units of the clients that it was given to. It is safe for
// concurrent use.
//
// What the table does not tell is not in it: a write whose condition fails
// consumes a unit at least, and what the SDK sends again twice.
type Meter struct {
	mu   sync.Mutex
	uses map[Use]Units
}

// New returns a meter at zero.
func New() *Meter { return &Meter{uses: map[Use]Units{}} }

// Total returns the sum of all calls.
func (m *Meter) Total() Units { return m.sum(func(Use) bool { return true }) }

// Reset begins again at zero.
func (m *Meter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses = map[Use]Units{}
}

// Of returns the sum of the calls of one operation, such as "PutItem".
func (m *Meter) Of(operation string) Units {
	return m.sum(func(u Use) bool { return u.Operation == operation })
}

// Uses returns what each use of the table came to.
func (m *Meter) Uses() map[Use]Units {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.uses)
}

func (m *Meter) sum(which func(Use) bool) (sum Units) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for use, units := range m.uses {
		if which(use) {
			sum = sum.Add(units)
		}
	}
	return sum
}

// Measure is an option of a client: its calls ask for what they consume, and
// are counted.
func (m *Meter) Measure(o *dynamodb.Options) { o.APIOptions = append(o.APIOptions, m.Install) }

// Install is Measure for one call of any client; calls of other services
// pass by.
func (m *Meter) Install(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("ConsumedUnits", m.call), middleware.After)
}

func (m *Meter) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	use := Use{Operation: middleware.GetOperationName(ctx), Item: ask(in.Parameters)}
	out, metadata, err := next.HandleInitialize(ctx, in)
	if err == nil {
		m.count(use, out.Result)
	}
	return out, metadata, err
}

// ask makes a call tell what it consumes, and returns the kind of its first
// item.
func ask(parameters any) string {
	const total = types.ReturnConsumedCapacityTotal
	switch call := parameters.(type) {
	case *dynamodb.GetItemInput:
		call.ReturnConsumedCapacity = total
		return kindOf(call.Key)
	case *dynamodb.BatchGetItemInput:
		call.ReturnConsumedCapacity = total
		for _, asked := range call.RequestItems {
			return kindOf(asked.Keys[0])
		}
	case *dynamodb.QueryInput:
		call.ReturnConsumedCapacity = total
		return kindOf(queried(call))
	case *dynamodb.ScanInput:
		call.ReturnConsumedCapacity = total
	case *dynamodb.PutItemInput:
		call.ReturnConsumedCapacity = total
		return kindOf(call.Item)
	case *dynamodb.UpdateItemInput:
		call.ReturnConsumedCapacity = total
		return kindOf(call.Key)
	case *dynamodb.DeleteItemInput:
		call.ReturnConsumedCapacity = total
		return kindOf(call.Key)
	case *dynamodb.BatchWriteItemInput:
		call.ReturnConsumedCapacity = total
	case *dynamodb.TransactWriteItemsInput:
		call.ReturnConsumedCapacity = total
		return kindOf(transacted(call))
	case *dynamodb.BatchExecuteStatementInput:
		call.ReturnConsumedCapacity = total
		if len(call.Statements) > 0 {
			return kindOf(inserted(call.Statements[0]))
		}
	}
	return OtherItem
}

// count adds what an answer says. Where it does not tell reads from writes,
// the operation does.
func (m *Meter) count(use Use, answer any) {
	switch answer := answer.(type) {
	case *dynamodb.GetItemOutput:
		m.read(use, single(answer.ConsumedCapacity))
	case *dynamodb.QueryOutput:
		m.read(use, single(answer.ConsumedCapacity))
	case *dynamodb.ScanOutput:
		m.read(use, single(answer.ConsumedCapacity))
	case *dynamodb.BatchGetItemOutput:
		m.read(use, answer.ConsumedCapacity)
	case *dynamodb.PutItemOutput:
		m.wrote(use, single(answer.ConsumedCapacity))
	case *dynamodb.UpdateItemOutput:
		m.wrote(use, single(answer.ConsumedCapacity))
	case *dynamodb.DeleteItemOutput:
		m.wrote(use, single(answer.ConsumedCapacity))
	case *dynamodb.BatchWriteItemOutput:
		m.wrote(use, answer.ConsumedCapacity)
	case *dynamodb.TransactWriteItemsOutput:
		m.wrote(use, answer.ConsumedCapacity)
	case *dynamodb.BatchExecuteStatementOutput:
		m.wrote(use, answer.ConsumedCapacity)
	}
}

func single(consumed *types.ConsumedCapacity) []types.ConsumedCapacity {
	if consumed == nil {
		return nil
	}
	return []types.ConsumedCapacity{*consumed}
}

func (m *Meter) read(use Use, consumed []types.ConsumedCapacity) {
	m.add(use, Units{Calls: 1, Reads: units(consumed)})
}

func (m *Meter) wrote(use Use, consumed []types.ConsumedCapacity) {
	m.add(use, Units{Calls: 1, Writes: units(consumed)})
}

// units is the sum over the tables, or the statements, of a call.
func units(consumed []types.ConsumedCapacity) (sum float64) {
	for i := range consumed {
		sum += aws.ToFloat64(consumed[i].CapacityUnits)
	}
	return sum
}

func (m *Meter) add(use Use, u Units) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses[use] = m.uses[use].Add(u)
}
