package index_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

type attributes = map[string]types.AttributeValue

// replica answers a share of the eventually consistent reads as a replica does
// that lacks the last writes of a partition, none of them older than staleness.
// The index reads its tail and its chunks so, which are written by PutItem only.
type replica struct {
	clock func() time.Time
	share float64

	mu     sync.Mutex // guards what follows
	random *rand.Rand
	off    bool
	writes map[string][]*replicaWrite // by partition, in the order of the sort key
}

type replicaWrite struct {
	at     time.Time
	sk     string
	before attributes // nil when there was no item
}

func newReplica(seed uint64, share float64, clock func() time.Time) *replica {
	return &replica{
		clock: clock, share: share, random: rand.New(rand.NewPCG(seed, 5)), //nolint:gosec // the same on every run
		writes: map[string][]*replicaWrite{},
	}
}

// disable has all later reads be up to date.
func (r *replica) disable() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off = true
}

// install puts the replica between a client and the table.
func (r *replica) install(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Replica", r.call), middleware.After)
	})
}

func (r *replica) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	var done func(answer any, err error)
	switch call := in.Parameters.(type) {
	case *dynamodb.PutItemInput:
		done = r.put(call)
	case *dynamodb.QueryInput:
		if call.ConsistentRead == nil || !*call.ConsistentRead {
			done = r.query
		}
	case *dynamodb.BatchGetItemInput:
		done = r.batch(call)
	}
	out, metadata, err := next.HandleInitialize(ctx, in)
	if done != nil {
		done(out.Result, err)
	}
	return out, metadata, err
}

func keyOf(item attributes) (pk, sk string) {
	return item["PK"].(*types.AttributeValueMemberS).Value, item["SK"].(*types.AttributeValueMemberS).Value
}

// put notes what a write replaces. A write whose answer is lost may have
// happened: of an entry of the tail, which replaces nothing, that is noted too.
func (r *replica) put(call *dynamodb.PutItemInput) func(any, error) {
	call.ReturnValues = types.ReturnValueAllOld
	pk, sk := keyOf(call.Item)
	tail := strings.HasPrefix(sk, "T#")
	return func(answer any, err error) {
		var refused *types.ConditionalCheckFailedException
		var before attributes
		if out, ok := answer.(*dynamodb.PutItemOutput); ok && err == nil {
			before = out.Attributes
		}
		if errors.As(err, &refused) || err != nil && !tail {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		recent := append(r.recent(pk), &replicaWrite{at: r.clock(), sk: sk, before: before})
		slices.SortStableFunc(recent, func(a, b *replicaWrite) int { return strings.Compare(a.sk, b.sk) })
		r.writes[pk] = recent
	}
}

func (r *replica) recent(pk string) []*replicaWrite {
	oldest := r.clock().Add(-staleness)
	return slices.DeleteFunc(r.writes[pk], func(w *replicaWrite) bool { return !w.at.After(oldest) })
}

// lacking draws whether the partition is behind, and returns the items as they
// were before its last few writes.
func (r *replica) lacking(pk string) map[string]attributes {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes[pk] = r.recent(pk)
	recent := r.writes[pk]
	if r.off || len(recent) == 0 || r.random.Float64() >= r.share {
		return nil
	}
	then := map[string]attributes{}
	for _, w := range slices.Backward(recent[r.random.IntN(len(recent)):]) {
		then[w.sk] = w.before
	}
	return then
}

// query leaves out of a partition's items those that were not there.
func (r *replica) query(answer any, err error) {
	out, ok := answer.(*dynamodb.QueryOutput)
	if !ok || err != nil || len(out.Items) == 0 {
		return
	}
	pk, _ := keyOf(out.Items[0])
	then := r.lacking(pk)
	out.Items = slices.DeleteFunc(out.Items, func(item attributes) bool {
		_, sk := keyOf(item)
		before, lacks := then[sk]
		return lacks && before == nil
	})
	out.Count = int32(len(out.Items))
}

// batch replaces the items of an eventually consistent batch by what they were.
func (r *replica) batch(call *dynamodb.BatchGetItemInput) func(any, error) {
	for _, asked := range call.RequestItems {
		if asked.ConsistentRead != nil && *asked.ConsistentRead {
			return nil
		}
	}
	return func(answer any, err error) {
		out, ok := answer.(*dynamodb.BatchGetItemOutput)
		if !ok || err != nil {
			return
		}
		for table, items := range out.Responses {
			var old []attributes
			for _, item := range items {
				pk, sk := keyOf(item)
				before, lacks := r.lacking(pk)[sk]
				switch {
				case !lacks:
					old = append(old, item)
				case before != nil:
					old = append(old, maps.Clone(before))
				}
			}
			out.Responses[table] = old
		}
	}
}
