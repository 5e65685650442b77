package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/klauspost/compress/zstd"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/bounded"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/retry"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Table is the service's one table. A package declares an interface of the
// methods that it needs. It is safe for concurrent use.
type Table struct {
	client *dynamodb.Client
	name   string
	now    func() time.Time
	packer func() (*zstd.Encoder, *zstd.Decoder) // of payloads, made when they are first needed
	active *bounded.Map[value.ID, value.Time]    // until when organizations are known to be active
	// unsigned are the organizations that are known to have no keys of signed senders.
	unsigned *bounded.Map[value.ID, bool]
	tails    *bounded.Map[string, writtenTail] // by partition key
}

// maxRemembered bounds the keys that a process remembers.
const maxRemembered = 50_000

// New returns the table of the name; now is the clock that decides what has
// expired.
func New(client *dynamodb.Client, name string, now func() time.Time) *Table {
	return &Table{
		client: client, name: name, now: now, packer: sync.OnceValues(newPacker), active: bounded.New[value.ID, value.Time](maxRemembered),
		unsigned: bounded.New[value.ID, bool](maxRemembered), tails: bounded.New[string, writtenTail](maxRemembered),
	}
}

// Name returns the table's name.
func (t *Table) Name() string { return t.name }

// Ping makes one cheap read, so that a function's first request finds an
// open connection and a fault in the wiring shows at its start.
func (t *Table) Ping(ctx context.Context) error {
	_, err := t.get(ctx, key{"PING", "PING"})
	return err
}

// get reads one item, strongly consistent; nil when it is absent or expired.
func (t *Table) get(ctx context.Context, k key) (item, error) { return t.getItem(ctx, k, true) }

// getItem is get, strongly or eventually consistent.
func (t *Table) getItem(ctx context.Context, k key, consistent bool) (item, error) {
	out, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.name, Key: k.item(), ConsistentRead: &consistent})
	if err != nil {
		return nil, wrap("get item", err)
	}
	if out.Item == nil || t.expired(out.Item) {
		return nil, nil
	}
	return out.Item, nil
}

// read reads and decodes one item, as get does. decode gets nil for an item that is
// absent.
func read[T any](ctx context.Context, t *Table, k key, decode func(item) (T, error)) (v T, err error) {
	it, err := t.get(ctx, k)
	if err != nil {
		return v, err
	}
	return decode(it)
}

// expired reports whether the time to live of an item is over: the table
// removes such items up to 48 hours late.
func (t *Table) expired(it item) bool {
	at := getNumber(it, attrExpires)
	return at != 0 && at <= t.now().Unix()
}

func (t *Table) live(items []item) []item { return slices.DeleteFunc(items, t.expired) }

// queryPage reads one page of what the input selects, expired items included, and
// the key after which the next one begins, nil at the end.
func (t *Table) queryPage(ctx context.Context, in *dynamodb.QueryInput) (items []item, last item, err error) {
	in.TableName = &t.name
	out, err := t.client.Query(ctx, in)
	if err != nil {
		return nil, nil, wrap("query", err)
	}
	return out.Items, out.LastEvaluatedKey, nil
}

// query reads the items that the input selects, page by page, and hands the
// unexpired ones to each until it returns false.
func (t *Table) query(ctx context.Context, in *dynamodb.QueryInput, each func(item) (bool, error)) error {
	for {
		items, last, err := t.queryPage(ctx, in)
		if err != nil {
			return err
		}
		for _, it := range t.live(items) {
			if more, err := each(it); err != nil || !more {
				return err
			}
		}
		if len(last) == 0 {
			return nil
		}
		in.ExclusiveStartKey = last
	}
}

// collect reads what a query finds, at most limit items unless that is 0.
func collect[T any](ctx context.Context, t *Table, in *dynamodb.QueryInput, limit int, decode func(item) (T, error)) ([]T, error) {
	var found []T
	err := t.query(ctx, in, func(it item) (bool, error) {
		v, err := decode(it)
		if err == nil {
			found = append(found, v)
		}
		return limit == 0 || len(found) < limit, err
	})
	return found, err
}

// maxPage bounds the items of a page: no more of the smallest items fit into
// the 1 MB that a query answers.
const maxPage = 10_000

// page decodes the unexpired items of one page of what the input selects, and returns
// the sort key after which the next page begins, "" at the end.
func page[T any](ctx context.Context, t *Table, in *dynamodb.QueryInput, decode func(item) (T, error)) (found []T, next string, err error) {
	items, last, err := t.queryPage(ctx, in)
	for _, it := range t.live(items) {
		v, err := decode(it)
		if err != nil {
			return nil, "", err
		}
		found = append(found, v)
	}
	return found, getString(last, attrSK), err
}

// after is the query of at most limit items of a partition that come after a sort
// key, or from the first on when that is "", strongly consistent.
func after(pk, sk string, limit int) *dynamodb.QueryInput {
	in := between(pk, behind(sk), "~")
	in.Limit = aws.Int32(int32(min(limit, maxPage))) //nolint:gosec // bounded
	return in
}

// partition is the query of a whole partition, or of its sort keys with a
// prefix, strongly consistent.
func partition(pk, prefix string) *dynamodb.QueryInput {
	in := &dynamodb.QueryInput{
		KeyConditionExpression:    aws.String("PK = :pk"),
		ExpressionAttributeValues: item{":pk": str(pk)},
		ConsistentRead:            aws.Bool(true),
	}
	if prefix != "" {
		in.KeyConditionExpression = aws.String("PK = :pk AND begins_with(SK, :prefix)")
		in.ExpressionAttributeValues[":prefix"] = str(prefix)
	}
	return in
}

// between is the query of the sort keys from first to last, both included.
func between(pk, first, last string) *dynamodb.QueryInput {
	in := partition(pk, "")
	in.KeyConditionExpression = aws.String("PK = :pk AND SK BETWEEN :first AND :last")
	in.ExpressionAttributeValues[":first"], in.ExpressionAttributeValues[":last"] = str(first), str(last)
	return in
}

// timed is the query of a GSI1 partition in the order of time, which is that
// of the text, from the sort key after to the one before.
func timed(pk, after, before string, limit int) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		IndexName:              aws.String(gsi1),
		KeyConditionExpression: aws.String("GSI1PK = :pk AND GSI1SK BETWEEN :after AND :before"),
		ExpressionAttributeValues: item{
			":pk": str(pk), ":after": str(after), ":before": str(before),
		},
		Limit: aws.Int32(int32(min(limit, 1000))), //nolint:gosec // bounded
	}
}

// maxBatchGet is the most keys of one BatchGetItem.
const maxBatchGet = 100

// batchGet reads the items with the keys, each once, strongly or eventually
// consistent. Absent items are left out; expired ones are not. It asks again for the
// keys that the table left unprocessed, with growing pauses, for as long as the context
// allows.
func (t *Table) batchGet(ctx context.Context, keys []key, consistent bool) (found []item, err error) {
	seen, distinct := make(map[key]bool, len(keys)), make([]item, 0, len(keys))
	for _, k := range keys {
		if !seen[k] {
			seen[k], distinct = true, append(distinct, k.item())
		}
	}
	for wanted := range slices.Chunk(distinct, maxBatchGet) {
		request := map[string]types.KeysAndAttributes{t.name: {Keys: wanted, ConsistentRead: &consistent}}
		for attempt := 1; ; attempt++ {
			out, err := t.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: request})
			if err != nil {
				return nil, wrap("batch get", err)
			}
			found = append(found, out.Responses[t.name]...)
			if request = out.UnprocessedKeys; len(request) == 0 {
				break
			}
			if err := retry.Backoff(ctx, attempt); err != nil {
				return nil, wrap("batch get", err)
			}
		}
	}
	return found, nil
}

// readMixed reads items of several types and decodes each by its type: a record,
// a delivery, the body of a payload, a tally, an endpoint, an application or a
// credential.
func (t *Table) readMixed(ctx context.Context, keys []key, consistent bool) (map[key]any, error) {
	items, err := t.batchGet(ctx, keys, consistent)
	if err != nil {
		return nil, err
	}
	found := make(map[key]any, len(items))
	for _, it := range t.live(items) {
		k := keyOf(it)
		switch getString(it, attrType) {
		case typeRecord:
			found[k], err = decodeRecord(it)
		case typeDelivery:
			found[k], err = decodeDelivery(it)
		case typePayload:
			found[k], err = t.decodePayload(it)
		case typeCounters:
			found[k], err = decodeTally(it)
		case typeEndpoint:
			found[k], err = decodeEndpoint(it)
		case typeApplication:
			found[k], err = decodeDoc[account.Application](it)
		case typeCredential:
			found[k], err = decodeFound[account.Credential](it)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// of is what was found under the key; zero when it is absent.
func of[T any](found map[key]any, k key) T {
	v, _ := found[k].(T)
	return v
}

// lookup reads items of one type by their ids, as [Table.readMixed] does. Absent
// ones are not in the answer.
func lookup[T any](ctx context.Context, t *Table, ids []value.ID, consistent bool, keyFor func(value.ID) key) (map[value.ID]T, error) {
	keys := make([]key, len(ids))
	for i, id := range ids {
		keys[i] = keyFor(id)
	}
	read, err := t.readMixed(ctx, keys, consistent)
	found := make(map[value.ID]T, len(read))
	for i, id := range ids {
		if v, is := read[keys[i]].(T); is {
			found[id] = v
		}
	}
	return found, err
}

// throttles are the error codes, of a request and of a statement, that mean: try
// again a little later. A request's may end with "Exception".
var throttles = map[string]bool{
	"ProvisionedThroughputExceeded": true,
	"RequestLimitExceeded":          true,
	"ThrottlingError":               true,
	"Throttling":                    true,
	"LimitExceeded":                 true,
	"InternalServerError":           true,
	"ServiceUnavailable":            true,
	"TransactionConflict":           true,
	"TransactionInProgress":         true,
}

// wrap names the attempted operation and turns a table that is busy or out of reach
// into a fault. A request that the table refuses as wrong stays an internal
// error: it is ours.
func wrap(tried string, err error) error {
	err = fmt.Errorf("%s: %w", tried, err)
	var api smithy.APIError
	if errors.As(err, &api) {
		if throttles[strings.TrimSuffix(api.ErrorCode(), "Exception")] {
			return fault.Busy(err)
		}
		return err
	}
	return fault.Busy(err)
}
