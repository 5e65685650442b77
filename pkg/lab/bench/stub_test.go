package bench

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/local/runner"
)

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func TestTheStubAnswersReadsWithTheItemsThatThereAre(t *testing.T) {
	s, err := newStub(t.Context(), "t", []jsontext.Value{
		[]byte(`{"PK":{"S":"p1"},"SK":{"S":"s1"},"n":{"N":"1"}}`), []byte(`{"SK":{"S":"s2"},"n":{"N":"2"},"PK":{"S":"p2"}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	url := s.url()
	client := dynamodb.NewFromConfig(runner.AWSConfig(), func(o *dynamodb.Options) { o.BaseEndpoint = &url })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got, err := client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"t": {Keys: []key{
		{"PK": text("p1"), "SK": text("s1")}, {"PK": text("p3"), "SK": text("s3")}, {"PK": text("p2"), "SK": text("s2")},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"1", "2"} {
		if found := got.Responses["t"][i]["n"].(*types.AttributeValueMemberN).Value; found != want {
			t.Errorf("item %d is %s, want %s", i, found, want)
		}
	}
	one, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("t"), Key: key{"PK": text("p2"), "SK": text("s2")}})
	if err != nil || len(one.Item) != 3 {
		t.Errorf("the second item: got %v, %v", one.Item, err)
	}
	none, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("t"), Key: key{"PK": text("p2"), "SK": text("s1")}})
	if err != nil || len(none.Item) > 0 {
		t.Errorf("no item: got %v, %v", none.Item, err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}
