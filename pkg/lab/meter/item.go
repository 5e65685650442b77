package meter

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/dynamo/chart"
)

// The kinds of item that are told apart, as [chart.KindOf] names them.
const (
	RecordItem      = "record"
	TailItem        = "index tail"
	ManifestItem    = "index manifest"
	ChunkItem       = "index chunk"
	JobItem         = "index job"
	ActivityItem    = "index activity"
	RateItem        = "rate window"
	KeyItem         = "API key"
	ApplicationItem = "application"
	DeliveryItem    = "delivery"
	PayloadItem     = "payload"
	CountersItem    = "counters" // counter shards and permits of endpoints
	HourItem        = "finished hour"
	OtherItem       = "other"
	StreamItem      = "stream" // what is read of it, without units
)

// IndexItems are the kinds that the index consists of.
func IndexItems() []string { return []string{TailItem, ManifestItem, ChunkItem, JobItem, ActivityItem} }

type item = map[string]types.AttributeValue

// kindOf tells an item's kind from its key.
func kindOf(i item) string { return chart.KindOf(text(i["PK"]), text(i["SK"])) }

func text(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// firstItem is the first item of a call, or its key.
func firstItem(call any) item {
	switch call := call.(type) {
	case *dynamodb.GetItemInput:
		return call.Key
	case *dynamodb.PutItemInput:
		return call.Item
	case *dynamodb.UpdateItemInput:
		return call.Key
	case *dynamodb.DeleteItemInput:
		return call.Key
	case *dynamodb.BatchGetItemInput:
		for _, asked := range call.RequestItems {
			return asked.Keys[0]
		}
	case *dynamodb.QueryInput: // its condition names the partition first
		_, name, _ := strings.Cut(aws.ToString(call.KeyConditionExpression), ":")
		name, _, _ = strings.Cut(name, " ")
		return item{"PK": call.ExpressionAttributeValues[":"+name]}
	case *dynamodb.BatchExecuteStatementInput: // an INSERT names the key first, an UPDATE before its last condition
		if len(call.Statements) == 0 {
			return nil
		}
		values := call.Statements[0].Parameters
		if strings.HasPrefix(aws.ToString(call.Statements[0].Statement), "UPDATE") {
			values = values[max(0, len(values)-3):]
		}
		if len(values) > 1 {
			return item{"PK": values[0], "SK": values[1]}
		}
	case *dynamodb.TransactWriteItemsInput:
		for _, w := range call.TransactItems {
			switch {
			case w.Put != nil:
				return w.Put.Item
			case w.Update != nil:
				return w.Update.Key
			case w.Delete != nil:
				return w.Delete.Key
			case w.ConditionCheck != nil:
				return w.ConditionCheck.Key
			}
		}
	}
	return nil
}
