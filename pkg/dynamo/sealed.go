package dynamo

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/webhook"
)

// SealedItem is an item that holds something sealed under the service key.
type SealedItem struct {
	Endpoint *webhook.Endpoint   // with sealed secrets, or
	Request  *idempotency.Record // with a sealed answer

	key       key
	attribute string // the one that holds it
	read      types.AttributeValue
}

// String names the item for an operator.
func (s *SealedItem) String() string { return s.key.pk + " " + s.key.sk }

// EachSealed reads the whole table, and passes what holds something sealed to
// each, from several goroutines. Reads are eventually consistent and cost half a
// unit for each 4 KB of the table, whatever is found. It is for operators'
// commands: nothing else finds the sealed items of every organization.
func (t *Table) EachSealed(ctx context.Context, each func(context.Context, *SealedItem) error) error {
	in := dynamodb.ScanInput{
		FilterExpression:          aws.String("#t = :endpoint AND attribute_exists(doc) OR #t = :request AND attribute_exists(#body)"),
		ProjectionExpression:      aws.String("PK, SK, #t, doc, #body, expiresAtEpoch"),
		ExpressionAttributeNames:  map[string]string{"#t": attrType, "#body": attrBody},
		ExpressionAttributeValues: item{":endpoint": str(typeEndpoint), ":request": str(typeRequest)},
	}
	return t.scan(ctx, in, func(ctx context.Context, items []item) error {
		for _, it := range t.live(items) {
			s, err := decodeSealed(it)
			if err != nil {
				return err
			}
			if err := each(ctx, &s); err != nil {
				return err
			}
		}
		return nil
	})
}

func decodeSealed(it item) (s SealedItem, err error) {
	s = SealedItem{key: keyOf(it), attribute: attrDoc}
	if getString(it, attrType) == typeEndpoint {
		s.read = it[attrDoc]
		s.Endpoint, err = decodeDoc[webhook.Endpoint](it)
		return s, err
	}
	s.attribute, s.read = attrBody, it[attrBody]
	org, err := organizationOf(s.key.pk)
	if err != nil {
		return s, err
	}
	_, hash, found := strings.Cut(s.key.pk, "#REQUEST#")
	if !found {
		return s, fmt.Errorf("the item %s is not a request's", &s)
	}
	s.Request = &idempotency.Record{Key: idempotency.Key{Organization: org, Hash: hash}, Answer: getBinary(it, attrBody)}
	return s, nil
}

// ReplaceSealed stores the newly sealed text, of the endpoint or of the request's
// answer, and nothing else of the item. done is false, and
// nothing written, when the item has changed since it was read.
func (t *Table) ReplaceSealed(ctx context.Context, s *SealedItem) (done bool, err error) {
	next := encodeDoc(s.Endpoint)
	if s.Request != nil {
		next = binary(s.Request.Answer)
	}
	w := t.set(s.key, item{s.attribute: next}, when("#"+s.attribute+" = :read", item{":read": s.read}))
	_, done, err = t.updateItem(ctx, "replace what is sealed", w)
	return done, err
}
