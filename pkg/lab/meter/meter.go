// Package meter counts the read and write units that a client's calls of DynamoDB consume, as the table itself answers
// them, by operation. It is for benchmarks and tests.
package meter

import (
	"context"
	"errors"
	"maps"
	"reflect"
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

// Add returns the sum.
func (u Units) Add(v Units) Units {
	return Units{Calls: u.Calls + v.Calls, Reads: u.Reads + v.Reads, Writes: u.Writes + v.Writes}
}

// Meter sums the units of the clients that it was given to. It is safe for concurrent use. The table does not answer
// the units of a write whose condition fails: it counts as one, and not at all in a transaction. Nor does it answer
// those of an attempt that the SDK repeats.
type Meter struct {
	mu   sync.Mutex
	uses map[string]Units
}

// New returns a meter at zero.
func New() *Meter { return &Meter{uses: map[string]Units{}} }

// Reset begins again at zero.
func (m *Meter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses = map[string]Units{}
}

// Total returns the sum of all calls but those that read the stream, which cost no units.
func (m *Meter) Total() (sum Units) {
	for _, units := range m.Uses() {
		sum = sum.Add(units)
	}
	return sum
}

// Uses returns the sum of each operation, such as PutItem.
func (m *Meter) Uses() map[string]Units {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.uses)
}

// Measure is an option of a client: its calls ask for what they consume, and are counted.
func (m *Meter) Measure(o *dynamodb.Options) { o.APIOptions = append(o.APIOptions, m.Install) }

// Install is Measure for one call of any client. Calls of other services pass through.
func (m *Meter) Install(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("ConsumedUnits", m.call), middleware.After)
}

func (m *Meter) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	operation := middleware.GetOperationName(ctx)
	if f := reflect.ValueOf(in.Parameters).Elem().FieldByName("ReturnConsumedCapacity"); f.IsValid() {
		f.Set(reflect.ValueOf(types.ReturnConsumedCapacityTotal))
	}
	out, metadata, err := next.HandleInitialize(ctx, in)
	var refused *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		m.count(operation, out.Result)
	case errors.As(err, &refused):
		m.add(operation, Units{Calls: 1, Writes: 1})
	}
	return out, metadata, err
}

// count adds an answer's units. The operation distinguishes reads from writes.
func (m *Meter) count(operation string, answer any) {
	f := reflect.ValueOf(answer).Elem().FieldByName("ConsumedCapacity")
	if !f.IsValid() {
		return
	}
	var sum float64 // over the tables, or the statements, of the call
	switch consumed := f.Interface().(type) {
	case *types.ConsumedCapacity:
		if consumed != nil {
			sum = aws.ToFloat64(consumed.CapacityUnits)
		}
	case []types.ConsumedCapacity:
		for i := range consumed {
			sum += aws.ToFloat64(consumed[i].CapacityUnits)
		}
	}
	units := Units{Calls: 1, Writes: sum}
	switch operation {
	case "GetItem", "BatchGetItem", "Query", "Scan":
		units = Units{Calls: 1, Reads: sum}
	}
	m.add(operation, units)
}

func (m *Meter) add(operation string, units Units) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses[operation] = m.uses[operation].Add(units)
}
