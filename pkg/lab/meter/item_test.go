package meter

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func keyed(pk, sk string) item {
	return item{"PK": &types.AttributeValueMemberS{Value: pk}, "SK": &types.AttributeValueMemberS{Value: sk}}
}

func TestKindsAreToldApartByKeys(t *testing.T) {
	for key, want := range map[[2]string]string{
		{"ORG#o#PRODUCT#a", "id"}:         RecordItem,
		{"ORG#o#INVOICE#0", "id"}:         RecordItem,
		{"ORG#o#EVENT#0", "id"}:           DeliveryItem,
		{"ORG#o#PAYLOAD#e", "PAYLOAD"}:    PayloadItem,
		{"ORG#o#COUNTERS#e", "g"}:         CountersItem,
		{"ORG#o#COUNTERS", "e#3"}:         CountersItem,
		{"ORG#o#STATS#e", "at#3"}:         HourItem,
		{"ORG#o#KEYS#a", "id"}:            KeyItem,
		{"ORG#o#DEV", "APP#a"}:            ApplicationItem,
		{"KEY#abcdefgh", "KEY"}:           KeyItem,
		{"RATE#a", "RATE"}:                RateItem,
		{"IDX#o#orders", "T#01"}:          TailItem,
		{"IDX#o#orders", "MANIFEST#3.12"}: ManifestItem,
		{"IDX#o#orders", "REBUILD#3.12"}:  ManifestItem,
		{"IDX#o#orders", "JOB"}:           JobItem,
		{"IDX#o#orders#1f", "CHUNK"}:      ChunkItem,
		{"DUE#1", "at"}:                   OtherItem,
	} {
		if got := kindOf(keyed(key[0], key[1])); got != want {
			t.Errorf("%v: got %q, want %q", key, got, want)
		}
	}
}

func TestEachCallIsAskedForWhatItConsumes(t *testing.T) {
	record := keyed("ORG#o#ORDER#1", "id")
	get := &dynamodb.GetItemInput{Key: record}
	batch := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"t": {Keys: []item{record}}}}
	query := &dynamodb.QueryInput{
		KeyConditionExpression:    aws.String("PK = :pk AND SK BETWEEN :after AND :end"),
		ExpressionAttributeValues: item{":pk": &types.AttributeValueMemberS{Value: "IDX#o#orders"}},
	}
	scan := &dynamodb.ScanInput{}
	put, update, remove := &dynamodb.PutItemInput{Item: record}, &dynamodb.UpdateItemInput{Key: record}, &dynamodb.DeleteItemInput{Key: record}
	writes := &dynamodb.BatchWriteItemInput{}
	transaction := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{Item: record}}}}
	statements := &dynamodb.BatchExecuteStatementInput{Statements: []types.BatchStatementRequest{
		{Parameters: []types.AttributeValue{record["PK"], record["SK"]}},
	}}
	for _, row := range []struct {
		call  any
		asked *types.ReturnConsumedCapacity
		want  string
	}{
		{get, &get.ReturnConsumedCapacity, RecordItem},
		{batch, &batch.ReturnConsumedCapacity, RecordItem},
		{query, &query.ReturnConsumedCapacity, TailItem},
		{scan, &scan.ReturnConsumedCapacity, OtherItem},
		{put, &put.ReturnConsumedCapacity, RecordItem},
		{update, &update.ReturnConsumedCapacity, RecordItem},
		{remove, &remove.ReturnConsumedCapacity, RecordItem},
		{writes, &writes.ReturnConsumedCapacity, OtherItem},
		{transaction, &transaction.ReturnConsumedCapacity, RecordItem},
		{statements, &statements.ReturnConsumedCapacity, RecordItem},
	} {
		if got := ask(row.call); got != row.want || *row.asked != types.ReturnConsumedCapacityTotal {
			t.Errorf("%T: got an item of kind %q and asked %q, want %q and TOTAL", row.call, got, *row.asked, row.want)
		}
	}
}
