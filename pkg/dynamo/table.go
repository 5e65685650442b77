package dynamo

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/pause"
)

// Table is the service's one table: the stores of everything in it, over one
// client. It is for wiring and tests; a package that needs one noun takes its
// store, behind an interface of its own. It is safe for concurrent use.
type Table struct {
	*db
	*RecordStore
	*AccountStore
	*EndpointStore
	*DeliveryStore
	*RateStore
	*IndexStore
}

// The stores of the table. Each owns the items of its noun.
type (
	// RecordStore keeps commerce records.
	RecordStore struct{ *db }
	// AccountStore keeps applications, API keys and credentials.
	AccountStore struct{ *db }
	// EndpointStore keeps endpoints, their condition, counters and permits.
	EndpointStore struct{ *db }
	// DeliveryStore keeps deliveries, payloads, due marks and recoveries.
	DeliveryStore struct {
		*db
		packer func() *packer // made when it is first needed
		seed   maphash.Seed   // of the write tokens of outcomes
	}
	// RateStore keeps rate windows.
	RateStore struct{ *db }
	// IndexStore keeps the tails, manifests, chunks and jobs of lists, and the
	// register of organizations.
	IndexStore struct{ *db }
)

// db is what the stores share.
type db struct {
	client *dynamodb.Client
	name   string
	now    func() time.Time
}

// New returns the table of the name; now is the clock that decides what has
// expired.
func New(client *dynamodb.Client, name string, now func() time.Time) *Table {
	db := &db{client: client, name: name, now: now}
	return &Table{
		db: db, RecordStore: &RecordStore{db}, AccountStore: &AccountStore{db}, EndpointStore: &EndpointStore{db},
		DeliveryStore: &DeliveryStore{db: db, packer: sync.OnceValue(newPacker), seed: maphash.MakeSeed()},
		RateStore:     &RateStore{db}, IndexStore: &IndexStore{db},
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

// item is an item as the SDK gives it.
type item = map[string]types.AttributeValue

func (k key) item() item { return item{attrPK: str(k.pk), attrSK: str(k.sk)} }

// get reads one item, strongly consistent; nil when it is absent or expired.
func (t *db) get(ctx context.Context, k key) (item, error) {
	out, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &t.name, Key: k.item(), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, wrap("get item", err)
	}
	if out.Item == nil || t.expired(out.Item) {
		return nil, nil
	}
	return out.Item, nil
}

// expired reports whether the time to live of an item is over: the table
// removes such items up to 48 hours late.
func (t *db) expired(it item) bool {
	at := getNumber(it, attrExpires)
	return at != 0 && at <= t.now().Unix()
}

// query reads every item that the input selects, page by page, and hands the
// unexpired ones to each until it returns false.
func (t *db) query(ctx context.Context, in *dynamodb.QueryInput, each func(item) (bool, error)) error {
	in.TableName = &t.name
	pages := dynamodb.NewQueryPaginator(t.client, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return wrap("query", err)
		}
		for _, it := range page.Items {
			if t.expired(it) {
				continue
			}
			more, err := each(it)
			if err != nil || !more {
				return err
			}
		}
	}
	return nil
}

// partition is the query of a whole partition, or of the sort keys with a
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

// batchGetMax is the most keys that one BatchGetItem takes.
const batchGetMax = 100

// batchGet reads the items with the given keys, strongly consistent; absent
// and expired ones are left out. Keys must be distinct. What the table left
// unprocessed is asked for again, with a growing pause.
func (t *db) batchGet(ctx context.Context, keys []key) ([]item, error) {
	found, err := t.batchGetAll(ctx, keys)
	return slices.DeleteFunc(found, t.expired), err
}

// batchGetAll is batchGet, and reads what has expired too.
func (t *db) batchGetAll(ctx context.Context, keys []key) ([]item, error) {
	found := make([]item, 0, len(keys))
	for chunk := range slices.Chunk(keys, batchGetMax) {
		var err error
		if found, err = t.batchGetChunk(ctx, chunk, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (t *db) batchGetChunk(ctx context.Context, keys []key, found []item) ([]item, error) {
	wanted := make([]map[string]types.AttributeValue, len(keys))
	for i, k := range keys {
		wanted[i] = k.item()
	}
	request := map[string]types.KeysAndAttributes{t.name: {Keys: wanted, ConsistentRead: aws.Bool(true)}}
	for delay := 10 * time.Millisecond; ; delay = min(2*delay, time.Second) {
		out, err := t.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: request})
		if err != nil {
			return nil, wrap("batch get", err)
		}
		found = append(found, out.Responses[t.name]...)
		if request = out.UnprocessedKeys; len(request) == 0 {
			return found, nil
		}
		if err := pause.For(ctx, delay); err != nil {
			return nil, wrap("batch get", err)
		}
	}
}

// throttles are the error codes that mean: try again a little later.
var throttles = map[string]bool{
	"ProvisionedThroughputExceededException": true,
	"RequestLimitExceeded":                   true,
	"ThrottlingException":                    true,
	"LimitExceededException":                 true,
	"InternalServerError":                    true,
	"ServiceUnavailable":                     true,
	"TransactionInProgressException":         true,
	"TransactionConflictException":           true,
}

// wrap names what was tried and turns a table that is busy or out of reach
// into a fault. A request that the table refuses as wrong stays an internal
// error: it is ours.
func wrap(tried string, err error) error {
	err = fmt.Errorf("%s: %w", tried, err)
	var api smithy.APIError
	if errors.As(err, &api) {
		if throttles[api.ErrorCode()] {
			return fault.Busy(err)
		}
		return err
	}
	return fault.Busy(err)
}

// conditionFailed reports whether a conditional write met another state, and
// gives that state when the write asked for it.
func conditionFailed(err error) (current item, failed bool) {
	var c *types.ConditionalCheckFailedException
	if errors.As(err, &c) {
		return c.Item, true
	}
	return nil, false
}
