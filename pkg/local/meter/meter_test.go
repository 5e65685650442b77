package meter_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/dynamo/dynamotest"
	"github.com/commerce-integration/service/pkg/local/meter"
)

func TestUnitsAreThoseThatTheTableTells(t *testing.T) {
	plain, table := dynamotest.Client(t)
	m := meter.New()
	client := dynamodb.New(plain.Options(), m.Measure)
	key := map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "a"}, "SK": &types.AttributeValueMemberS{Value: "b"}}
	item := map[string]types.AttributeValue{"PK": key["PK"], "SK": key["SK"], "body": &types.AttributeValueMemberS{Value: strings.Repeat("x", 5000)}}
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
		t.Fatal(err)
	}
	put := m.Total()
	if put != (meter.Units{Calls: 1, Writes: 5}) {
		t.Errorf("a put of 5,000 bytes: got %+v, want 5 write units", put)
	}
	for _, consistent := range []bool{true, false} {
		in := &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(consistent)}
		if _, err := client.GetItem(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.Total().Sub(put); got != (meter.Units{Calls: 2, Reads: 3}) || m.Of("GetItem") != got {
		t.Errorf("two reads of 5,000 bytes, one strongly consistent: got %+v, want 2 and 1 read units", got)
	}
}
