package dynamo

import (
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
func (t *DeliveryStore) CreateDelivery(ctx context.Context, r *webhook.Delivery) (existing *webhook.Delivery, err error) {
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

// CreateRows stores new rows. By index it returns those that are there
// already, of which nothing is written; nil stands for a row that was created.
// A row whose creation was not answered may be found to be there.
func (t *DeliveryStore) CreateDeliveries(ctx context.Context, rows []*webhook.Delivery) (existing []*webhook.Delivery, err error) {
	items := make([]insertion, len(rows))
	names, marked := rowAttributes(), markedAttributes()
	plain, withMark := t.insertStatement(names...), t.insertStatement(marked...)
	for i, r := range rows {
		it, err := encodeRow(r)
		if err != nil {
			return nil, err
		}
		items[i] = insertion{key: keyOf(it), statement: plain}
		if _, is := it[attrGSI1PK]; is {
			items[i].statement, items[i].values = withMark, valuesOf(it, marked)
		} else {
			items[i].values = valuesOf(it, names)
		}
		items[i].size = rowOverhead + len(getString(it, attrDoc))
	}
	there, err := t.insert(ctx, items)
	if err != nil {
		return nil, err
	}
	return t.rowsThere(ctx, rows, there)
}

// rowOverhead is about what a row has beside its doc, in bytes.
const rowOverhead = 256

// rowAttributes are those of every row, and markedAttributes those of one that
// GSI1 holds.
func rowAttributes() []string {
	return []string{attrPK, attrSK, attrType, attrDoc, attrRevision, attrExpires}
}

func markedAttributes() []string { return append(rowAttributes(), attrGSI1PK, attrGSI1SK) }

func valuesOf(it item, names []string) []types.AttributeValue {
	values := make([]types.AttributeValue, len(names))
	for i, name := range names {
		values[i] = it[name]
	}
	return values
}

// rowsThere reads the rows that are there already, expired ones too.
func (t *DeliveryStore) rowsThere(ctx context.Context, rows []*webhook.Delivery, there []bool) ([]*webhook.Delivery, error) {
	existing := make([]*webhook.Delivery, len(rows))
	at := map[key]int{}
	var keys []key
	for i, r := range rows {
		if k := eventKey(r.OrganizationID, r.ID); there[i] {
			if _, twice := at[k]; !twice {
				keys = append(keys, k)
			}
			at[k] = i
		}
	}
	if len(keys) == 0 {
		return existing, nil
	}
	items, err := t.batchGetAll(ctx, keys)
	if err != nil {
		return nil, err
	}
	found := make(map[key]*webhook.Delivery, len(items))
	for _, it := range items {
		if found[keyOf(it)], err = decodeRow(it); err != nil {
			return nil, err
		}
	}
	for i, r := range rows {
		if !there[i] {
			continue
		}
		if existing[i] = found[eventKey(r.OrganizationID, r.ID)]; existing[i] == nil {
			return nil, fault.Busy(fmt.Errorf("create rows: the row %s was there, and was removed meanwhile", r.ID))
		}
	}
	return existing, nil
}

// PutRow replaces previous by next. When somebody else was faster it returns
// the row as it is, nil when it has expired, with [fault.ErrChanged]. A write that
// met its own earlier try has succeeded.
func (t *DeliveryStore) PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (current *webhook.Delivery, err error) {
	it, err := encodeRow(next)
	if err != nil {
		return nil, err
	}
	mark := newMark()
	it[attrWrite] = unsigned(mark)
	_, err = t.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &t.name, Item: it,
		ConditionExpression:                 aws.String("rev = :rev"),
		ExpressionAttributeValues:           item{":rev": num(int64(previous.UpdatedAt))},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if found, failed := conditionFailed(err); failed {
		if getUnsigned(found, attrWrite) == mark {
			return next, nil
		}
		if current, err = decodeRow(found); err != nil {
			return nil, err
		}
		return current, fault.ErrChanged
	}
	if err != nil {
		return nil, wrap("put an event's row", err)
	}
	return next, nil
}

// ChangeRow stores what change makes of the row and returns it; nil when there
// is none. Change may be called again with a fresher row; an error of its own
// ends the attempt.
func (t *DeliveryStore) ChangeDelivery(ctx context.Context, org, id value.ID, change func(*webhook.Delivery) (*webhook.Delivery, error)) (*webhook.Delivery, error) {
	row, err := t.Delivery(ctx, org, id)
	for range changeAttempts {
		if err != nil || row == nil {
			return nil, err
		}
		next, changeErr := change(row)
		if changeErr != nil {
			return nil, changeErr
		}
		if row, err = t.PutDelivery(ctx, row, next); err == nil {
			return row, nil
		}
		if errors.Is(err, fault.ErrChanged) {
			err = nil
		}
	}
	return nil, fault.Busy(fmt.Errorf("change row %s: others were faster %d times", id, changeAttempts))
}

// Row reads one row, strongly consistent; nil when there is none.
func (t *DeliveryStore) Delivery(ctx context.Context, org, id value.ID) (*webhook.Delivery, error) {
	it, err := t.get(ctx, eventKey(org, id))
	if err != nil {
		return nil, err
	}
	return decodeRow(it)
}

// Rows reads rows by id. What is absent is not in the answer.
func (t *DeliveryStore) Deliveries(ctx context.Context, org value.ID, ids []value.ID) (map[value.ID]*webhook.Delivery, error) {
	keys := make([]key, len(ids))
	for i, id := range ids {
		keys[i] = eventKey(org, id)
	}
	items, err := t.batchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	found := make(map[value.ID]*webhook.Delivery, len(items))
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
func (t *DeliveryStore) AllDeliveries(ctx context.Context, org value.ID, each func(*webhook.Delivery) error) error {
	return t.shardQuery(ctx, org, eventKind, func(it item) error {
		r, err := decodeRow(it)
		if err != nil {
			return err
		}
		return each(r)
	})
}

// RowsPage reads one page of a shard of the organization's rows, as
// [RecordStore.RecordsPage] does of records; there are [Shards] of them.
func (t *DeliveryStore) DeliveriesPage(ctx context.Context, org value.ID, shard int, after string, limit int) (page []*webhook.Delivery, next string, err error) {
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
// and answers in the order of the references. Several may share an endpoint,
// which is not to be changed.
func (t *DeliveryStore) DeliveryInputs(ctx context.Context, refs []webhook.DeliveryRef) ([]webhook.DeliveryInput, error) {
	wanted := make([]deliveryKeys, len(refs))
	keys := make([]key, 0, 4*len(refs))
	seen := make(map[key]bool, 4*len(refs))
	for i, r := range refs {
		wanted[i] = keysOf(r)
		for _, k := range wanted[i] {
			if !seen[k] {
				seen[k] = true
				keys = append(keys, k)
			}
		}
	}
	items, err := t.batchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	found := &deliveryItems{
		table: t, items: make(map[key]item, len(items)),
		endpoints: map[key]*webhook.Endpoint{}, applications: map[key]webhook.ApplicationState{},
	}
	for _, it := range items {
		found.items[keyOf(it)] = it
	}
	deliveries := make([]webhook.DeliveryInput, len(refs))
	for i, r := range refs {
		if deliveries[i], err = found.delivery(r, wanted[i]); err != nil {
			return nil, err
		}
	}
	return deliveries, nil
}

// deliveryKeys are the keys of a row, its payload, its endpoint and its
// application, all under the reference's organization.
type deliveryKeys [4]key

func keysOf(r webhook.DeliveryRef) deliveryKeys {
	org := r.OrganizationID
	return deliveryKeys{
		eventKey(org, r.DeliveryID), payloadKey(org, r.EventID),
		endpointKey(org, r.EndpointID), applicationKey(org, r.ApplicationID),
	}
}

// deliveryItems are what the attempts of a batch need. An endpoint and an
// application, which many of them share, are decoded once.
type deliveryItems struct {
	table        *DeliveryStore
	items        map[key]item
	endpoints    map[key]*webhook.Endpoint
	applications map[key]webhook.ApplicationState
}

func (f *deliveryItems) delivery(r webhook.DeliveryRef, keys deliveryKeys) (d webhook.DeliveryInput, err error) {
	if d.Delivery, err = decodeRow(f.items[keys[0]]); err != nil {
		return d, err
	}
	if d.Delivery != nil && !r.Names(d.Delivery) {
		return d, fmt.Errorf("the message %s names another event than its row", r.Body())
	}
	if d.Payload, err = f.table.decodePayload(f.items[keys[1]]); err != nil {
		return d, err
	}
	if d.Endpoint, err = f.endpoint(keys[2]); err != nil {
		return d, err
	}
	d.Application, err = f.application(keys[3])
	return d, err
}

func (f *deliveryItems) endpoint(k key) (*webhook.Endpoint, error) {
	if e, known := f.endpoints[k]; known {
		return e, nil
	}
	e, err := decodeEndpoint(f.items[k])
	f.endpoints[k] = e
	return e, err
}

func (f *deliveryItems) application(k key) (webhook.ApplicationState, error) {
	state, known := f.applications[k]
	if it := f.items[k]; !known && it != nil {
		app, err := decodeApplication(it)
		if err != nil {
			return 0, err
		}
		state = stateOf(app)
	}
	f.applications[k] = state
	return state, nil
}

// DecodeRowChange reads the row of a stream record; nil when it was removed.
func DecodeDeliveryChange(r *events.DynamoDBEventRecord) (*webhook.Delivery, error) {
	return decodeRow(imageItem(r.Change.NewImage))
}

// encodeRow leaves out of the doc what the key says.
func encodeRow(r *webhook.Delivery) (item, error) {
	stored := *r
	stored.ID, stored.OrganizationID = value.ID{}, value.ID{}
	doc, err := json.Marshal(&stored)
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
		if r.HeldReason == webhook.HeldCircuitOpen {
			it[attrGSI1PK] = str(heldPartition(r.EndpointID))
		}
	}
	return it, nil
}

// decodeRow returns nil for what is absent.
func decodeRow(it item) (*webhook.Delivery, error) {
	if it == nil {
		return nil, nil
	}
	var r webhook.Delivery
	if err := json.Unmarshal([]byte(getString(it, attrDoc)), &r); err != nil {
		return nil, fmt.Errorf("decode row %s: %w", getString(it, attrSK), err)
	}
	var err error
	if r.ID, err = value.ParseID(getString(it, attrSK)); err != nil {
		return nil, fmt.Errorf("decode row %q: %w", getString(it, attrSK), err)
	}
	if r.OrganizationID, err = organizationOf(getString(it, attrPK)); err != nil {
		return nil, fmt.Errorf("decode row %s: %w", r.ID, err)
	}
	return &r, nil
}
