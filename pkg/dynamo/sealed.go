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

// ScanPosition is where a scan goes on: behind the item with the key. Its zero
// value is the beginning.
type ScanPosition struct {
	PK string `json:"pk"`
	SK string `json:"sk"`
}

// ScanSealed reads one page of a segment of the table, of so many segments, and
// returns what of it holds something sealed, and the position of the next page,
// zero at the end. Reads are eventually consistent and cost half a unit for
// each 4 KB of the table, whatever is found. It is for operators' commands:
// nothing else finds the sealed items of every organization.
func ScanSealed(ctx context.Context, t *Table, segment, segments int, after ScanPosition) (found []SealedItem, next ScanPosition, err error) {
	in := &dynamodb.ScanInput{
		TableName: &t.name, Segment: aws.Int32(int32(segment)), TotalSegments: aws.Int32(int32(segments)), //nolint:gosec // small
		FilterExpression:          aws.String("#t = :endpoint AND attribute_exists(doc) OR #t = :request AND attribute_exists(#body)"),
		ProjectionExpression:      aws.String("PK, SK, #t, doc, #body, expiresAtEpoch"),
		ExpressionAttributeNames:  map[string]string{"#t": attrType, "#body": attrBody},
		ExpressionAttributeValues: item{":endpoint": str(typeEndpoint), ":request": str(typeRequest)},
	}
	if after != (ScanPosition{}) {
		in.ExclusiveStartKey = key{after.PK, after.SK}.item()
	}
	out, err := t.client.Scan(ctx, in)
	if err != nil {
		return nil, next, wrap("scan", err)
	}
	for _, it := range t.live(out.Items) {
		s, err := decodeSealed(it)
		if err != nil {
			return nil, next, err
		}
		found = append(found, s)
	}
	return found, ScanPosition{getString(out.LastEvaluatedKey, attrPK), getString(out.LastEvaluatedKey, attrSK)}, nil
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
func ReplaceSealed(ctx context.Context, t *Table, s *SealedItem) (done bool, err error) {
	next := encodeDoc(s.Endpoint)
	if s.Request != nil {
		next = binary(s.Request.Answer)
	}
	w := t.set(s.key, item{s.attribute: next}, when("#"+s.attribute+" = :read", item{":read": s.read}))
	_, done, err = t.updateItem(ctx, "replace what is sealed", w)
	return done, err
}
