package dynamo

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// A row of the webhook history is its doc; rev is its updatedAt, on which
// writes are conditional, and GSI1 holds it under its due mark while it waits
// for the sweeper, or under its endpoint while it is HELD or FAILED.

// attrWrite tells a write from another with the same content: of two workers
// that come to the same outcome in the same millisecond one has written it.
const attrWrite = "w"

// CreateRow stores a new row. When there is one already nothing is written,
// and that one is returned.
func (t *Table) CreateRow(ctx context.Context, r *webhook.Row) (existing *webhook.Row, err error) {
	it, err := encodeRow(r)
	if err != nil {
		return nil, err
	}
	_, err = t.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &t.name, Item: it, ConditionExpression: aws.String("attribute_not_exists(PK)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if current, failed := conditionFailed(err); failed {
		return decodeRow(current)
	}
	if err != nil {
		return nil, wrap("create an event's row", err)
	}
	return nil, nil
}

// PutRow replaces previous by next. When somebody else was faster it returns
// the row as it is, nil when it has expired, with [ErrChanged]. A write that
// met its own earlier try has succeeded.
func (t *Table) PutRow(ctx context.Context, previous, next *webhook.Row) (current *webhook.Row, err error) {
	it, err := encodeRow(next)
	if err != nil {
		return nil, err
	}
	write := value.NewRandomID()
	it[attrWrite] = binary(write[:])
	_, err = t.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &t.name, Item: it,
		ConditionExpression:                 aws.String("rev = :rev"),
		ExpressionAttributeValues:           item{":rev": num(int64(previous.UpdatedAt))},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if found, failed := conditionFailed(err); failed {
		if bytes.Equal(getBinary(found, attrWrite), write[:]) {
			return next, nil
		}
		if current, err = decodeRow(found); err != nil {
			return nil, err
		}
		return current, ErrChanged
	}
	if err != nil {
		return nil, wrap("put an event's row", err)
	}
	return next, nil
}

// ChangeRow stores what change makes of the row and returns it; nil when there
// is none. Change may be called again with a fresher row; an error of its own
// ends the attempt.
func (t *Table) ChangeRow(ctx context.Context, org, id value.ID, change func(*webhook.Row) (*webhook.Row, error)) (*webhook.Row, error) {
	row, err := t.Row(ctx, org, id)
	for range changeAttempts {
		if err != nil || row == nil {
			return nil, err
		}
		next, changeErr := change(row)
		if changeErr != nil {
			return nil, changeErr
		}
		if row, err = t.PutRow(ctx, row, next); err == nil {
			return row, nil
		}
		if errors.Is(err, ErrChanged) {
			err = nil
		}
	}
	return nil, fault.Busy(fmt.Errorf("change row %s: others were faster %d times", id, changeAttempts))
}

// Row reads one row, strongly consistent; nil when there is none.
func (t *Table) Row(ctx context.Context, org, id value.ID) (*webhook.Row, error) {
	it, err := t.get(ctx, eventKey(org, id))
	if err != nil {
		return nil, err
	}
	return decodeRow(it)
}

// Rows reads rows by id. What is absent is not in the answer.
func (t *Table) Rows(ctx context.Context, org value.ID, ids []value.ID) (map[value.ID]*webhook.Row, error) {
	keys := make([]key, len(ids))
	for i, id := range ids {
		keys[i] = eventKey(org, id)
	}
	items, err := t.batchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	found := make(map[value.ID]*webhook.Row, len(items))
	for _, it := range items {
		r, err := decodeRow(it)
		if err != nil {
			return nil, err
		}
		found[r.ID] = r
	}
	return found, nil
}

// AllRows hands every row of the organization to each, which is called by
// one goroutine at a time, in no order.
func (t *Table) AllRows(ctx context.Context, org value.ID, each func(*webhook.Row) error) error {
	return t.shardQuery(ctx, org, eventKind, func(it item) error {
		r, err := decodeRow(it)
		if err != nil {
			return err
		}
		return each(r)
	})
}

// RowsPage reads one page of a shard of the organization's rows, as
// [Table.RecordsPage] does of records; there are [Shards] of them.
func (t *Table) RowsPage(ctx context.Context, org value.ID, shard int, after string, limit int) (page []*webhook.Row, next string, err error) {
	next, err = t.page(ctx, recordPartition(org, eventKind, shard), after, limit, func(it item) error {
		r, err := decodeRow(it)
		if err == nil {
			page = append(page, r)
		}
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("read a page of rows, shard %d: %w", shard, err)
	}
	return page, next, nil
}

// Deliveries reads what the attempts of the rows need, strongly consistent,
// and answers in the order of the references.
func (t *Table) Deliveries(ctx context.Context, refs []webhook.Ref) ([]webhook.Delivery, error) {
	var keys []key
	wanted := map[key]bool{}
	for _, r := range refs {
		for _, k := range deliveryKeys(r) {
			if !wanted[k] {
				wanted[k] = true
				keys = append(keys, k)
			}
		}
	}
	items, err := t.batchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	found := make(map[key]item, len(items))
	for _, it := range items {
		found[key{getString(it, attrPK), getString(it, attrSK)}] = it
	}
	deliveries := make([]webhook.Delivery, len(refs))
	for i, r := range refs {
		if deliveries[i], err = decodeDelivery(r, found); err != nil {
			return nil, err
		}
	}
	return deliveries, nil
}

// deliveryKeys are the keys of a row, its payload, its endpoint and its
// application, all under the reference's organization.
func deliveryKeys(r webhook.Ref) [4]key {
	org := r.OrganizationID
	return [4]key{
		eventKey(org, r.RowID), payloadKey(org, r.EventID),
		endpointKey(org, r.EndpointID), applicationKey(org, r.ApplicationID),
	}
}

func decodeDelivery(r webhook.Ref, found map[key]item) (webhook.Delivery, error) {
	keys := deliveryKeys(r)
	d := webhook.Delivery{Payload: getBinary(found[keys[1]], attrBody)}
	var err error
	if d.Row, err = decodeRow(found[keys[0]]); err != nil {
		return d, err
	}
	if d.Row != nil && d.Row.Ref() != r {
		return d, fmt.Errorf("the message %s names another event than its row", r.Body())
	}
	if d.Endpoint, err = decodeEndpoint(found[keys[2]]); err != nil {
		return d, err
	}
	if it := found[keys[3]]; it != nil {
		app, err := decodeApplication(it)
		if err != nil {
			return d, err
		}
		d.Application = stateOf(app)
	}
	return d, nil
}

// DecodeRowChange reads the row of a stream record; nil when it was removed.
func DecodeRowChange(r *events.DynamoDBEventRecord) (*webhook.Row, error) {
	return decodeRow(imageItem(r.Change.NewImage))
}

func encodeRow(r *webhook.Row) (item, error) {
	doc, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode row %s: %w", r.ID, err)
	}
	it := eventKey(r.OrganizationID, r.ID).item()
	it[attrType], it[attrDoc], it[attrRevision] = str(typeEvent), str(string(doc)), num(int64(r.UpdatedAt))
	it[attrExpires] = num(r.ExpiresAt().Std().Unix())
	switch {
	case r.Pending() && r.DueAt != nil:
		markDue(it, r.ID, *r.DueAt)
	case r.Unsent():
		it[attrGSI1PK], it[attrGSI1SK] = str(unsentPartition(r.EndpointID)), str(timedSort(r.CreatedAt, r.ID))
	}
	return it, nil
}

// decodeRow returns nil for what is absent.
func decodeRow(it item) (*webhook.Row, error) {
	if it == nil {
		return nil, nil
	}
	var r webhook.Row
	if err := json.Unmarshal([]byte(getString(it, attrDoc)), &r); err != nil {
		return nil, fmt.Errorf("decode row %s: %w", getString(it, attrSK), err)
	}
	return &r, nil
}
