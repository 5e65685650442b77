package meter

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The kinds of item that are told apart.
const (
	RecordItem      = "record"
	TailItem        = "index tail"
	ManifestItem    = "index manifest"
	ChunkItem       = "index chunk"
	JobItem         = "index job"
	RateItem        = "rate window"
	KeyItem         = "API key"
	ApplicationItem = "application"
	RowItem         = "delivery row"
	PayloadItem     = "payload"
	CountersItem    = "counters" // tallies and slots of endpoints
	HourItem        = "finished hour"
	OtherItem       = "other"
)

// IndexItems are the kinds that the index consists of.
func IndexItems() []string { return []string{TailItem, ManifestItem, ChunkItem, JobItem} }

type item = map[string]types.AttributeValue

// kindOf tells an item's kind.
func kindOf(i item) string { return KindOf(text(i["PK"]), text(i["SK"])) }

// KindOf tells an item's kind from its key.
func KindOf(partition, sort string) string {
	kind, rest, _ := strings.Cut(partition, "#")
	switch kind {
	case "RATE":
		return RateItem
	case "KEY":
		return KeyItem
	case "JOB":
		return JobItem
	case "IDX":
		return indexKind(sort)
	case "ORG":
		return organizationKind(rest)
	}
	return OtherItem
}

func indexKind(sort string) string {
	switch sort {
	case "CHUNK":
		return ChunkItem
	case "JOB":
		return JobItem
	case "MANIFEST", "REBUILD":
		return ManifestItem
	}
	return TailItem
}

// organizationKind tells the kind from what follows "ORG#": the organization
// and then what of it the partition holds.
func organizationKind(rest string) string {
	_, kind, _ := strings.Cut(rest, "#")
	kind, _, _ = strings.Cut(kind, "#")
	switch kind {
	case "PRODUCT", "CATEGORY", "ORDER", "CUSTOMER", "INVOICE":
		return RecordItem
	case "KEYS":
		return KeyItem
	case "DEV":
		return ApplicationItem
	case "EVENT":
		return RowItem
	case "PAYLOAD":
		return PayloadItem
	case "COUNTERS":
		return CountersItem
	case "STATS":
		return HourItem
	}
	return OtherItem
}

func text(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// queried is the partition that a query reads, by the value that its
// condition names first.
func queried(in *dynamodb.QueryInput) item {
	_, name, _ := strings.Cut(aws.ToString(in.KeyConditionExpression), ":")
	name, _, _ = strings.Cut(name, " ")
	return item{"PK": in.ExpressionAttributeValues[":"+name]}
}

// inserted is the item of a statement that names its key first.
func inserted(s types.BatchStatementRequest) item {
	if len(s.Parameters) < 2 {
		return nil
	}
	return item{"PK": s.Parameters[0], "SK": s.Parameters[1]}
}

// transacted is the first item of a transaction.
func transacted(in *dynamodb.TransactWriteItemsInput) item {
	for _, w := range in.TransactItems {
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
	return nil
}
