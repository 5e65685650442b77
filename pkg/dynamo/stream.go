package dynamo

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook"
)

// StreamType returns the item type of a stream record, such as "rec" of a
// record or "evt" of a delivery; "" of a removal, which no consumer acts on.
func StreamType(r *events.DynamoDBEventRecord) string {
	if r.Change.NewImage == nil {
		return ""
	}
	if v, ok := r.Change.NewImage[attrType]; ok && v.DataType() == events.DataTypeString {
		return v.String()
	}
	return ""
}

// StreamPartition returns the partition key of a stream record's item. The records
// of a partition come in order.
func StreamPartition(r *events.DynamoDBEventRecord) string { return r.Change.NewImage[attrPK].String() }

// Types of items that reach the stream's consumers.
const (
	StreamRecord   = typeRecord
	StreamEvent    = typeDelivery
	StreamEndpoint = typeEndpoint
	StreamBeat     = typeHeartbeat
)

// Stream decodes records of the table's stream.
type Stream struct{}

// RecordChange returns the write of a record; nil for a change of another item.
func (Stream) RecordChange(r *events.DynamoDBEventRecord) (*commerce.StoredChange, error) {
	if StreamType(r) != StreamRecord {
		return nil, nil
	}
	old, next, err := decodeChange(r, decodeRecord)
	return &commerce.StoredChange{Old: old, New: next}, err
}

// Delivery returns the delivery that was written; nil for a change of another
// item.
func (Stream) Delivery(r *events.DynamoDBEventRecord) (*webhook.Delivery, error) {
	if StreamType(r) != StreamEvent {
		return nil, nil
	}
	return decodeDelivery(imageItem(r.Change.NewImage))
}

// DeliveryChange returns a delivery before and after a write. One that was stored
// with its first outcome was PENDING before.
func (Stream) DeliveryChange(r *events.DynamoDBEventRecord) (old, next *webhook.Delivery, err error) {
	old, next, err = decodeChange(r, decodeDelivery)
	if old == nil && next != nil && next.AttemptCount > 0 {
		old = &webhook.Delivery{Status: webhook.DeliveryPending}
	}
	return old, next, err
}

// EndpointChange is what an endpoint was and what it is; nil when there was none or
// it was deleted.
func (Stream) EndpointChange(r *events.DynamoDBEventRecord) (old, next *webhook.Endpoint, err error) {
	return decodeChange(r, decodeEndpoint)
}

// decodeChange decodes the images of a stream record; an absent one is nil.
func decodeChange[T any](r *events.DynamoDBEventRecord, decode func(item) (*T, error)) (old, next *T, err error) {
	if old, err = decode(imageItem(r.Change.OldImage)); err != nil {
		return nil, nil, err
	}
	next, err = decode(imageItem(r.Change.NewImage))
	return old, next, err
}

// imageItem turns a stream image into an item; nil stays nil.
func imageItem(image map[string]events.DynamoDBAttributeValue) item {
	if image == nil {
		return nil
	}
	it := make(item, len(image))
	for name, v := range image {
		it[name] = imageValue(v)
	}
	return it
}

// imageValue returns nil for a value of a type that no consumer reads.
func imageValue(v events.DynamoDBAttributeValue) types.AttributeValue {
	switch v.DataType() {
	case events.DataTypeString:
		return str(v.String())
	case events.DataTypeNumber:
		return &types.AttributeValueMemberN{Value: v.Number()}
	case events.DataTypeBoolean:
		return boolean(v.Boolean())
	case events.DataTypeList:
		list := make([]types.AttributeValue, len(v.List()))
		for i, e := range v.List() {
			list[i] = imageValue(e)
		}
		return &types.AttributeValueMemberL{Value: list}
	default:
		return nil
	}
}

// Beat writes the heartbeat that the stream brings to its consumers, who do
// nothing with it: a consumer that has no heartbeat for minutes stands still.
// It costs one write unit. Its time changes with every heartbeat, since the stream
// leaves a write out that changes nothing.
func (t *Table) Beat(ctx context.Context, now value.Time) error {
	it := heartbeatKey().newItem(typeHeartbeat)
	it[attrAt] = num(now)
	_, _, err := t.putItem(ctx, "write the heartbeat", t.put(it, always))
	return err
}
