package dynamo

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/retry"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	scanSegments = 4  // parts of the table that are read at a time
	maxBatchPut  = 25 // items of one BatchWriteItem
)

// Eraser finds and deletes every item of an organization. Some items have keys
// that only other items know, which may be gone, so it reads the whole table.
// Operators' commands use it, and no function.
type Eraser struct{ table *Table }

// NewEraser returns an eraser of the table.
func NewEraser(t *Table) *Eraser { return &Eraser{t} }

// OwnedItem is an item of an organization, expired ones included.
type OwnedItem struct {
	Type  string // attribute t, by which the chart names the item
	it    item
	table *Table
}

// ItemRef names an item that was read.
type ItemRef struct{ key key }

// EachItem passes every item of the organization to each, one at a time, in any
// order. It reads the table once, strongly consistent: a read unit for each 4 KB
// of the table, whatever the organization has. Items that appear meanwhile may
// be missed. The windows and days of its applications' requests are not among
// them; [Eraser.EachRequestDay] reads these.
func (e *Eraser) EachItem(ctx context.Context, org value.ID, each func(*OwnedItem) error) error {
	var mu sync.Mutex
	in := dynamodb.ScanInput{
		ConsistentRead: aws.Bool(true),
		FilterExpression: aws.String("begins_with(PK, :items) OR begins_with(PK, :index) OR begins_with(PK, :users)" +
			" OR (PK = :register AND SK = :org) OR #org = :org"),
		ExpressionAttributeNames: map[string]string{"#org": "OrganizationID"},
		ExpressionAttributeValues: item{
			":org": str(org.String()), ":register": str(organizationsPartition), ":items": str("ORG#" + org.String() + "#"),
			":index": str(tailPartition(org, "")), ":users": str(ratePartition(org.String() + "#")),
		},
	}
	return e.table.scan(ctx, in, func(_ context.Context, items []item) error {
		mu.Lock()
		defer mu.Unlock()
		return e.pass(items, each)
	})
}

// scan passes the whole table to each, page by page, from several goroutines.
func (t *Table) scan(ctx context.Context, in dynamodb.ScanInput, each func(context.Context, []item) error) error {
	in.TableName, in.TotalSegments = &t.name, aws.Int32(scanSegments)
	group, ctx := errgroup.WithContext(ctx)
	for segment := range int32(scanSegments) {
		part := in
		part.Segment = &segment
		pages := dynamodb.NewScanPaginator(t.client, &part)
		group.Go(func() error {
			for pages.HasMorePages() {
				page, err := pages.NextPage(ctx)
				if err != nil {
					return wrap("read the table", err)
				}
				if err := each(ctx, page.Items); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (e *Eraser) pass(items []item, each func(*OwnedItem) error) error {
	for _, it := range items {
		if err := each(&OwnedItem{Type: getString(it, attrType), it: it, table: e.table}); err != nil {
			return err
		}
	}
	return nil
}

// EachRequestDay passes the rate window and the counted days of an application,
// which fit into one page.
func (e *Eraser) EachRequestDay(ctx context.Context, application value.ID, each func(*OwnedItem) error) error {
	items, _, err := e.table.queryPage(ctx, partition(ratePartition(application.String()), ""))
	if err != nil {
		return err
	}
	return e.pass(items, each)
}

// Ref names the item.
func (i *OwnedItem) Ref() ItemRef { return ItemRef{keyOf(i.it)} }

// Record decodes a record; nil for another item.
func (i *OwnedItem) Record() (*commerce.Stored, error) {
	return decodeOwned(i, typeRecord, decodeRecord)
}

// Delivery decodes a delivery; nil for another item.
func (i *OwnedItem) Delivery() (*webhook.Delivery, error) {
	return decodeOwned(i, typeDelivery, decodeDelivery)
}

// Receipt decodes a receipt; nil for another item.
func (i *OwnedItem) Receipt() (*receipt.Stored, error) {
	return decodeOwned(i, typeReceipt, decodeDoc[receipt.Stored])
}

func decodeOwned[T any](i *OwnedItem, itemType string, decode func(item) (*T, error)) (*T, error) {
	if i.Type != itemType {
		return nil, nil
	}
	return decode(i.it)
}

// Payload returns the event and the body of a payload; a nil body for another
// item.
func (i *OwnedItem) Payload() (event value.ID, body []byte, err error) {
	if i.Type != typePayload {
		return event, nil, nil
	}
	pk := keyOf(i.it).pk
	if event, err = value.ParseID(pk[strings.LastIndexByte(pk, '#')+1:]); err != nil {
		return event, nil, fmt.Errorf("the payload %q: %w", pk, err)
	}
	body, err = i.table.decodePayload(i.it)
	return event, body, err
}

// Chunk returns the list and the name of a chunk; false for another item.
func (i *OwnedItem) Chunk() (list string, chunk index.Chunk, ok bool) {
	parts := strings.Split(keyOf(i.it).pk, "#")
	if i.Type != typeChunk || len(parts) != 4 {
		return "", chunk, false
	}
	number, err := strconv.ParseUint(parts[3], 16, 64)
	return parts[2], index.Chunk{Number: number, ContentID: getUnsigned(i.it, attrToken)}, err == nil
}

// Applications adds the applications that the item's key or attributes name.
func (i *OwnedItem) Applications(known map[value.ID]bool) {
	parts := strings.Split(keyOf(i.it).pk, "#")
	name := getString(i.it, attrApplication)
	switch i.Type {
	case typeApplication:
		name = strings.TrimPrefix(keyOf(i.it).sk, applicationPrefix)
	case typeKey, typeEventDay:
		name = parts[len(parts)-1]
	}
	if id, err := value.ParseID(name); err == nil {
		known[id] = true
	}
}

// Texts returns all texts of an item as they are stored: its keys, and its
// attributes of type string, those in lists and maps included.
func (i *OwnedItem) Texts() []string {
	var texts []string
	var add func(types.AttributeValue)
	add = func(v types.AttributeValue) {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			texts = append(texts, v.Value)
		case *types.AttributeValueMemberL:
			for _, e := range v.Value {
				add(e)
			}
		case *types.AttributeValueMemberM:
			for name, e := range v.Value {
				texts = append(texts, name)
				add(e)
			}
		}
	}
	for _, v := range i.it {
		add(v)
	}
	return texts
}

// Remove deletes items in batches; absent items are ignored.
func (e *Eraser) Remove(ctx context.Context, refs []ItemRef) error {
	for some := range slices.Chunk(refs, maxBatchPut) {
		batch := make([]types.WriteRequest, len(some))
		for i, r := range some {
			batch[i].DeleteRequest = &types.DeleteRequest{Key: r.key.item()}
		}
		if err := e.removeBatch(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

func (e *Eraser) removeBatch(ctx context.Context, batch []types.WriteRequest) error {
	for attempt := 1; ; attempt++ {
		out, err := e.table.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{e.table.name: batch}})
		if err != nil {
			return wrap("erase items", err)
		}
		if batch = out.UnprocessedItems[e.table.name]; len(batch) == 0 {
			return nil
		}
		if err := retry.Backoff(ctx, attempt); err != nil {
			return wrap("erase items", err)
		}
	}
}
