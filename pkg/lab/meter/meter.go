// Package meter counts the read and write units that a client's calls of
// DynamoDB consume, as the table itself tells them, by operation and kind of
// item. It is for benchmarks, which know what a unit costs.
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

// Use is one way of using the table.
type Use struct {
	Operation string // such as "PutItem"
	Item      string // the kind of item, one of the constants
}

// Meter sums the units of the clients that it was given to. It is safe for
// concurrent use. The table does not tell what a write whose condition fails
// consumes: it counts as one unit, which is right for an item of up to 1 KB, and
// not at all in a transaction. Nor does it tell the units of an attempt that the
// SDK repeats.
type Meter struct {
	mu   sync.Mutex
	uses map[Use]Units
}

// New returns a meter at zero.
func New() *Meter { return &Meter{uses: map[Use]Units{}} }

// Reset begins again at zero.
func (m *Meter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses = map[Use]Units{}
}

// Total returns the sum of all calls.
func (m *Meter) Total() (sum Units) {
	for _, units := range m.Uses() {
		sum = sum.Add(units)
	}
	return sum
}

// Uses returns what each use of the table came to.
func (m *Meter) Uses() map[Use]Units {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.uses)
}

// Measure is an option of a client: its calls ask for what they consume, and
// are counted.
func (m *Meter) Measure(o *dynamodb.Options) { o.APIOptions = append(o.APIOptions, m.Install) }

// Install is Measure for one call of any client. Calls of other services pass
// through.
func (m *Meter) Install(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("ConsumedUnits", m.call), middleware.After)
}

func (m *Meter) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	use := Use{Operation: middleware.GetOperationName(ctx), Item: ask(in.Parameters)}
	out, metadata, err := next.HandleInitialize(ctx, in)
	var refused *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		m.count(use, out.Result)
	case errors.As(err, &refused):
		m.add(use, Units{Calls: 1, Writes: 1})
	}
	return out, metadata, err
}

// ask makes a call tell what it consumes, if it can, and returns the kind of
// its first item.
func ask(call any) string {
	if f := reflect.ValueOf(call).Elem().FieldByName("ReturnConsumedCapacity"); f.IsValid() {
		f.Set(reflect.ValueOf(types.ReturnConsumedCapacityTotal))
	}
	return kindOf(firstItem(call))
}

// count adds what an answer says. The table does not tell reads from writes;
// the operation does.
func (m *Meter) count(use Use, answer any) {
	if use.Operation == "GetRecords" {
		m.add(Use{Operation: use.Operation, Item: StreamItem}, Units{Calls: 1})
		return
	}
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
	switch use.Operation {
	case "GetItem", "BatchGetItem", "Query", "Scan":
		units = Units{Calls: 1, Reads: sum}
	}
	m.add(use, units)
}

func (m *Meter) add(use Use, units Units) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses[use] = m.uses[use].Add(units)
}
