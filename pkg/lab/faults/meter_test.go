package faults_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

func TestUnitsAreThoseThatTheTableTells(t *testing.T) {
	plain, table := dynamotest.Client(t)
	m := faults.NewMeter()
	client := dynamodb.New(plain.Options(), m.Measure)
	key := map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "a"}, "SK": &types.AttributeValueMemberS{Value: "b"}}
	item := map[string]types.AttributeValue{"PK": key["PK"], "SK": key["SK"], "body": &types.AttributeValueMemberS{Value: strings.Repeat("x", 5000)}}
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
		t.Fatal(err)
	}
	put := m.Total()
	if put != (faults.Units{Calls: 1, Writes: 5}) {
		t.Errorf("a put of 5,000 bytes: got %+v, want 5 write units", put)
	}
	for _, consistent := range []bool{true, false} {
		in := &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(consistent)}
		if _, err := client.GetItem(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.Uses()["GetItem"]; got != (faults.Units{Calls: 2, Reads: 3}) {
		t.Errorf("two reads of 5,000 bytes, one strongly consistent: got %+v, want 2 and 1 read units", got)
	}
	m.Reset()
	in := &dynamodb.PutItemInput{TableName: &table, Item: key, ConditionExpression: aws.String("attribute_not_exists(PK)")}
	if _, err := client.PutItem(t.Context(), in); err == nil || m.Total() != (faults.Units{Calls: 1, Writes: 1}) {
		t.Errorf("a put whose condition fails: got %v and %+v, want an error and 1 write unit", err, m.Total())
	}
}

func TestABatchOfStatementsIsOneCall(t *testing.T) {
	plain, table := dynamotest.Client(t)
	m := faults.NewMeter()
	client := dynamodb.New(plain.Options(), m.Measure)
	insert := "INSERT INTO \"" + table + "\" VALUE {'PK': ?, 'SK': ?, 'body': ?}"
	in := &dynamodb.BatchExecuteStatementInput{}
	for _, sk := range []string{"a", "b", "c"} {
		in.Statements = append(in.Statements, types.BatchStatementRequest{Statement: &insert, Parameters: []types.AttributeValue{
			&types.AttributeValueMemberS{Value: "ORG#o#PAYLOAD#e"}, &types.AttributeValueMemberS{Value: sk},
			&types.AttributeValueMemberB{Value: []byte(strings.Repeat("x", 1500))},
		}})
	}
	if _, err := client.BatchExecuteStatement(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if got, want := m.Uses()["BatchExecuteStatement"], (faults.Units{Calls: 1, Writes: 6}); got != want {
		t.Errorf("three items of 1,500 bytes: got %+v of %v, want %+v", got, m.Uses(), want)
	}
}
