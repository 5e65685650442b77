package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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

// PutPayloads keeps the bodies of events' deliveries, each event once. What
// is there already stays, so that every attempt sends the same bytes even
// when a later release would write them otherwise.
func (t *DeliveryStore) PutPayloads(ctx context.Context, payloads []webhook.Payload) error {
	expires := num(t.now().Add(webhook.PayloadRetention).Unix())
	plain := t.insertStatement(attrPK, attrSK, attrType, attrExpires, attrBody)
	packed := t.insertStatement(attrPK, attrSK, attrType, attrExpires, attrPacked)
	items := make([]insertion, len(payloads))
	for i, p := range payloads {
		k := payloadKey(p.OrganizationID, p.EventID)
		attribute, body := t.packPayload(p.Body)
		statement := plain
		if attribute == attrPacked {
			statement = packed
		}
		items[i] = insertion{
			key: k, statement: statement, size: len(k.pk) + len(body),
			values: []types.AttributeValue{str(k.pk), str(k.sk), str(typePayload), expires, binary(body)},
		}
	}
	_, err := t.insert(ctx, items)
	return err
}

// PutPayload keeps one body, as PutPayloads does.
func (t *DeliveryStore) PutPayload(ctx context.Context, org, event value.ID, body []byte) error {
	it := payloadKey(org, event).item()
	it[attrType] = str(typePayload)
	it[attrExpires] = num(t.now().Add(webhook.PayloadRetention).Unix())
	attribute, stored := t.packPayload(body)
	it[attribute] = binary(stored)
	_, err := t.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &t.name, Item: it, ConditionExpression: aws.String("attribute_not_exists(PK)"),
	})
	if _, failed := conditionFailed(err); failed || err == nil {
		return nil
	}
	return wrap("put a payload", err)
}

// packPayload is how a body is stored: the attribute that holds it, and what
// that holds.
func (t *DeliveryStore) packPayload(body []byte) (attribute string, stored []byte) {
	if len(body) > unitBody {
		if packed, smaller := t.packer().pack(body); smaller {
			return attrPacked, packed
		}
	}
	return attrBody, body
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
