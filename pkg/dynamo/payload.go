package dynamo

import (
	"context"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// attrPacked is the body of an event's deliveries, zstd-packed, where that
// makes it smaller; otherwise it is in attrBody, as is one that pays for a
// single write unit of 1 KB anyway, key and names included.
const (
	attrPacked = "z"
	unitBody   = 900
)

// PutPayloads keeps the bodies of events' deliveries, each event once. One
// that exists already stays, so that every attempt sends the same bytes even
// when a later release would write them otherwise.
func (t *DeliveryStore) PutPayloads(ctx context.Context, payloads []webhook.Payload) error {
	names := []string{attrPK, attrSK, attrType, attrExpires, attrBody, attrPacked}
	items, statements := make([]insertion, len(payloads)), map[int]string{}
	for i, p := range payloads {
		items[i] = t.insertion(t.encodePayload(p.OrganizationID, p.EventID, p.Body), names, statements)
	}
	_, err := t.insert(ctx, items)
	return err
}

// PutPayload keeps one body, as PutPayloads does.
func (t *DeliveryStore) PutPayload(ctx context.Context, org, event value.ID, body []byte) error {
	_, _, err := t.write(ctx, "put a payload", t.put(t.encodePayload(org, event, body), ifAbsent, nil))
	return err
}

func (t *DeliveryStore) encodePayload(org, event value.ID, body []byte) item {
	it := payloadKey(org, event).newItem(typePayload)
	it[attrExpires] = num(t.now().Add(webhook.PayloadRetention).Unix())
	if len(body) > unitBody {
		if packed, smaller := t.packer().pack(body); smaller {
			it[attrPacked] = binary(packed)
			return it
		}
	}
	it[attrBody] = binary(body)
	return it
}

// Payload reads the body of an event's deliveries; nil when there is none.
func (t *DeliveryStore) Payload(ctx context.Context, org, event value.ID) ([]byte, error) {
	it, err := t.get(ctx, payloadKey(org, event))
	if err != nil || it == nil {
		return nil, err
	}
	return t.decodePayload(it)
}

// decodePayload returns nil for what is absent.
func (t *DeliveryStore) decodePayload(it item) ([]byte, error) {
	if packed := getBinary(it, attrPacked); packed != nil {
		return t.packer().unpack(packed)
	}
	return getBinary(it, attrBody), nil
}
