package dynamo

import (
	"context"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook"
)

// EventualDeliveries is [Table.Deliveries] for half of the read units,
// eventually consistent.
func (t *Table) EventualDeliveries(ctx context.Context, org value.ID, ids []value.ID) (map[value.ID]*webhook.Delivery, error) {
	return readByID(ctx, t, org, deliveryKind, ids, false, decodeDelivery)
}

// Origin reads in one batch, eventually consistent, what events came from: the
// object's record, nil when there is none, and the payloads of the events. The
// record is of one of the kinds, and the one changed last where several kinds have
// one of that id. An expired payload is not in the answer.
func (t *Table) Origin(
	ctx context.Context, org, object value.ID, kinds []commerce.Kind, events []value.ID,
) (record *commerce.Stored, payloads map[value.ID][]byte, err error) {
	keys := make([]key, 0, len(kinds)+len(events))
	for _, kind := range kinds {
		keys = append(keys, recordKey(org, string(kind), object))
	}
	for _, event := range events {
		keys = append(keys, payloadKey(org, event))
	}
	found, err := t.readMixed(ctx, keys, false)
	if err != nil {
		return nil, nil, err
	}
	for _, k := range keys[:len(kinds)] {
		if r := of[*commerce.Stored](found, k); r != nil && (record == nil || r.Revision > record.Revision) {
			record = r
		}
	}
	payloads = make(map[value.ID][]byte, len(events))
	for i, event := range events {
		if body := of[[]byte](found, keys[len(kinds)+i]); body != nil {
			payloads[event] = body
		}
	}
	return record, payloads, nil
}
