// Package meter counts the read and write units that a client's calls of
// DynamoDB consume, as the table itself tells them. It is for benchmarks and
// the figures that they print; what a unit costs is left to them.
package meter

import (
	"context"
	"sync"

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

func (u Units) plus(v Units) Units {
	return Units{Calls: u.Calls + v.Calls, Reads: u.Reads + v.Reads, Writes: u.Writes + v.Writes}
}

// Meter sums the units of the clients that it was given to. It is safe for
// concurrent use.
type Meter struct {
	mu    sync.Mutex
	total Units
	byOp  map[string]Units
}

// New returns a meter at zero.
func New() *Meter { return &Meter{byOp: map[string]Units{}} }

// Total returns the sum of all calls.
func (m *Meter) Total() Units {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total
}

// Reset begins again at zero.
func (m *Meter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total, m.byOp = Units{}, map[string]Units{}
}

// Of returns the sum of the calls of one operation, such as "PutItem".
func (m *Meter) Of(operation string) Units {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byOp[operation]
}

// Measure is an option of a client: its calls ask for what they consume, and
// are counted.
func (m *Meter) Measure(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("ConsumedUnits", m.call), middleware.After)
	})
}

func (m *Meter) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	ask(in.Parameters)
	out, metadata, err := next.HandleInitialize(ctx, in)
	if err == nil {
		m.count(middleware.GetOperationName(ctx), out.Result)
	}
	return out, metadata, err
}

// ask makes a call tell what it consumes.
func ask(parameters any) {
	const total = types.ReturnConsumedCapacityTotal
	switch call := parameters.(type) {
	case *dynamodb.GetItemInput:
		call.ReturnConsumedCapacity = total
	case *dynamodb.BatchGetItemInput:
		call.ReturnConsumedCapacity = total
	case *dynamodb.QueryInput:
		call.ReturnConsumedCapacity = total
	case *dynamodb.PutItemInput:
		call.ReturnConsumedCapacity = total
	case *dynamodb.UpdateItemInput:
		call.ReturnConsumedCapacity = total
	case *dynamodb.DeleteItemInput:
		call.ReturnConsumedCapacity = total
	case *dynamodb.BatchWriteItemInput:
		call.ReturnConsumedCapacity = total
	case *dynamodb.TransactWriteItemsInput:
		call.ReturnConsumedCapacity = total
	}
}

// count adds what an answer says. Where it does not tell reads from writes,
// the operation does.
func (m *Meter) count(operation string, answer any) {
	switch answer := answer.(type) {
	case *dynamodb.GetItemOutput:
		m.add(operation, answer.ConsumedCapacity, false)
	case *dynamodb.QueryOutput:
		m.add(operation, answer.ConsumedCapacity, false)
	case *dynamodb.BatchGetItemOutput:
		for i := range answer.ConsumedCapacity {
			m.add(operation, &answer.ConsumedCapacity[i], false)
		}
	case *dynamodb.PutItemOutput:
		m.add(operation, answer.ConsumedCapacity, true)
	case *dynamodb.UpdateItemOutput:
		m.add(operation, answer.ConsumedCapacity, true)
	case *dynamodb.DeleteItemOutput:
		m.add(operation, answer.ConsumedCapacity, true)
	case *dynamodb.BatchWriteItemOutput:
		for i := range answer.ConsumedCapacity {
			m.add(operation, &answer.ConsumedCapacity[i], true)
		}
	case *dynamodb.TransactWriteItemsOutput:
		for i := range answer.ConsumedCapacity {
			m.add(operation, &answer.ConsumedCapacity[i], true)
		}
	}
}

func (m *Meter) add(operation string, consumed *types.ConsumedCapacity, write bool) {
	u := Units{Calls: 1}
	if consumed != nil && consumed.CapacityUnits != nil {
		if write {
			u.Writes = *consumed.CapacityUnits
		} else {
			u.Reads = *consumed.CapacityUnits
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total = m.total.plus(u)
	m.byOp[operation] = m.byOp[operation].plus(u)
}
