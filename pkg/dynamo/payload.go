package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// PutPayload keeps the body of an event's deliveries. What is there already
// stays, so that every attempt sends the same bytes even when a later release
// would write them otherwise.
func (t *Table) PutPayload(ctx context.Context, org, event value.ID, body []byte) error {
	it := payloadKey(org, event).item()
	it[attrType], it[attrBody] = str(typePayload), binary(body)
	it[attrExpires] = num(t.now().Add(webhook.PayloadRetention).Unix())
	_, err := t.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &t.name, Item: it, ConditionExpression: aws.String("attribute_not_exists(PK)"),
	})
	if _, failed := conditionFailed(err); failed || err == nil {
		return nil
	}
	return wrap("put a payload", err)
}

// Payload reads the body of an event's deliveries; nil when there is none.
func (t *Table) Payload(ctx context.Context, org, event value.ID) ([]byte, error) {
	it, err := t.get(ctx, payloadKey(org, event))
	return getBinary(it, attrBody), err
}
