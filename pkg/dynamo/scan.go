package dynamo

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/webhook"
	"github.com/commerce-integration/service/pkg/webhook/source"
)

// The methods of this file read the whole table. Operators' commands use them, and
// no function.

// scanSegments is how many parts of the table are read at a time.
const scanSegments = 4

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

// OwnedItem is an item of an organization, expired ones included.
type OwnedItem struct {
	it    item
	table *Table
}

// EachItem passes every item of the organization to each, one at a time, in any
// order: some have keys that only other items know, which may be gone. It reads the
// table once, strongly consistent: a read unit for each 4 KB of the table, whatever
// the organization has. Items that appear meanwhile may be missed. The windows and
// days of its applications' requests are not among them; [Table.EachRequestDay]
// reads these.
func (t *Table) EachItem(ctx context.Context, org value.ID, each func(*OwnedItem) error) error {
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
	return t.scan(ctx, in, func(_ context.Context, items []item) error {
		mu.Lock()
		defer mu.Unlock()
		return t.passOwned(items, each)
	})
}

// EachRequestDay passes the rate window and the counted days of an application,
// which fit into one page.
func (t *Table) EachRequestDay(ctx context.Context, application value.ID, each func(*OwnedItem) error) error {
	items, _, err := t.queryPage(ctx, partition(ratePartition(application.String()), ""))
	if err != nil {
		return err
	}
	return t.passOwned(items, each)
}

func (t *Table) passOwned(items []item, each func(*OwnedItem) error) error {
	for _, it := range items {
		if err := each(&OwnedItem{it, t}); err != nil {
			return err
		}
	}
	return nil
}

// Ref names the item.
func (i *OwnedItem) Ref() ItemRef { return ItemRef{keyOf(i.it)} }

// Type is the attribute by which the chart names the item.
func (i *OwnedItem) Type() string { return getString(i.it, attrType) }

// Content decodes a record, a delivery, a receipt, an object of a shop or a payload; nil
// for another item.
func (i *OwnedItem) Content() (any, error) {
	switch i.Type() {
	case typeRecord:
		return decodeRecord(i.it)
	case typeDelivery:
		return decodeDelivery(i.it)
	case typeReceipt:
		return decodeDoc[receipt.Stored](i.it)
	case typeShopObject:
		return decodeDoc[source.Object](i.it)
	case typePayload:
		event, err := value.ParseID(lastPart(keyOf(i.it).pk))
		if err != nil {
			return nil, fmt.Errorf("a payload's event %w", err)
		}
		body, err := i.table.decodePayload(i.it)
		return &webhook.Payload{EventID: event, Body: body}, err
	}
	return nil, nil
}

// Chunk returns the list and the name of a chunk; false for another item.
func (i *OwnedItem) Chunk() (list string, chunk index.Chunk, ok bool) {
	parts := strings.Split(keyOf(i.it).pk, "#")
	if i.Type() != typeChunk || len(parts) != 4 {
		return "", chunk, false
	}
	c, err := decodeChunk(i.it)
	return parts[2], index.Chunk{Number: c.Number, ContentID: c.ContentID}, err == nil
}

// Application returns the application that the item's key or attributes name; zero
// when they name none.
func (i *OwnedItem) Application() value.ID {
	k, name := keyOf(i.it), getString(i.it, attrApplication)
	switch i.Type() {
	case typeApplication:
		name = lastPart(k.sk)
	case typeKey, typeEventDay:
		name = lastPart(k.pk)
	}
	id, _ := value.ParseID(name)
	return id
}

// Names reports whether a text of the item, as it is stored, contains the id: a key,
// or an attribute, those in lists and maps included.
func (i *OwnedItem) Names(id value.ID) bool { return strings.Contains(encodeJSON(i.it), id.String()) }

// SealedItem is an item that holds something sealed under the service key.
type SealedItem struct {
	Endpoint *webhook.Endpoint   // with sealed secrets, or
	Source   *source.Source      // with sealed secrets, or
	Request  *idempotency.Record // with a sealed answer
	read     item
}

// String names the item for an operator.
func (s *SealedItem) String() string { return keyOf(s.read).pk + " " + keyOf(s.read).sk }

// EachSealed passes what holds something sealed to each, from several goroutines.
// Reads are eventually consistent and cost half a unit for each 4 KB of the table,
// whatever is found.
func (t *Table) EachSealed(ctx context.Context, each func(context.Context, *SealedItem) error) error {
	in := dynamodb.ScanInput{
		FilterExpression:          aws.String("#t IN (:endpoint, :source) AND attribute_exists(doc) OR #t = :request AND attribute_exists(#body)"),
		ExpressionAttributeNames:  map[string]string{"#t": attrType, "#body": attrBody},
		ExpressionAttributeValues: item{":endpoint": str(typeEndpoint), ":source": str(typeSource), ":request": str(typeRequest)},
	}
	return t.scan(ctx, in, func(ctx context.Context, items []item) error {
		for _, it := range t.live(items) {
			s, err := decodeSealed(it)
			if err != nil {
				return err
			}
			if err := each(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

func decodeSealed(it item) (s *SealedItem, err error) {
	s = &SealedItem{read: it}
	switch getString(it, attrType) {
	case typeEndpoint:
		s.Endpoint, err = decodeEndpoint(it)
		return s, err
	case typeSource:
		s.Source, err = decodeDoc[source.Source](it)
		return s, err
	}
	org, err := organizationOf(keyOf(it).pk)
	if err == nil {
		s.Request, err = decodeRequest(idempotency.Key{Organization: org, Hash: lastPart(keyOf(it).pk)}, it)
	}
	return s, err
}

// ReplaceSealed stores the newly sealed text, of the endpoint, the source or the request's
// answer, and nothing else of the item. done is false, and nothing written, when the
// item has changed since it was read.
func (t *Table) ReplaceSealed(ctx context.Context, s *SealedItem) (done bool, err error) {
	attribute, next := attrDoc, encodeDoc(s.Endpoint)
	switch {
	case s.Source != nil:
		next = encodeDoc(s.Source)
	case s.Request != nil:
		attribute, next = attrBody, binary(s.Request.Answer)
	}
	w := t.set(keyOf(s.read), item{attribute: next}, when("#"+attribute+" = :read", item{":read": s.read[attribute]}))
	_, done, err = t.updateItem(ctx, "replace what is sealed", w)
	return done, err
}
