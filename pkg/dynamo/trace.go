package dynamo

import (
	"context"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook"
)

// EventualDeliveries is [DeliveryStore.Deliveries] for half of the read units,
// eventually consistent.
func (t *DeliveryStore) EventualDeliveries(ctx context.Context, org value.ID, ids []value.ID) (map[value.ID]*webhook.Delivery, error) {
	return readByID(ctx, t.db, org, deliveryKind, ids, false, decodeDelivery)
}

// Origin reads in one batch, eventually consistent, what events came from: the
// object's record, nil when there is none, and the payloads of the events. The
// record is of one of the kinds, and the one changed last where several kinds have
// one of that id. A payload that is no longer kept is not in the answer.
func (t *DeliveryStore) Origin(
	ctx context.Context, org, object value.ID, kinds []commerce.Kind, events []value.ID,
) (record *commerce.Stored, payloads map[value.ID][]byte, err error) {
	keys, eventOf := make([]key, 0, len(kinds)+len(events)), map[key]value.ID{}
	for _, kind := range kinds {
		keys = append(keys, recordKey(org, string(kind), object))
	}
	for _, event := range events {
		k := payloadKey(org, event)
		keys, eventOf[k] = append(keys, k), event
	}
	items, err := t.batchGet(ctx, keys, false)
	if err != nil {
		return nil, nil, err
	}
	payloads = make(map[value.ID][]byte, len(events))
	for _, it := range t.live(items) {
		if getString(it, attrType) == typePayload {
			payloads[eventOf[keyOf(it)]], err = t.decodePayload(it)
		} else {
			var found *commerce.Stored
			if found, err = decodeRecord(it); err == nil && (record == nil || found.Revision > record.Revision) {
				record = found
			}
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return record, payloads, nil
}
