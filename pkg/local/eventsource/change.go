package eventsource

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// A change is one record of a stream. It is converted for the first source that wants it, and then for all.
type change struct {
	id     string // the sequence number
	key    string // the partition key
	from   *types.StreamRecord
	record func() record
}

func (f *Feed) change(from types.Record) *change {
	c := &change{id: aws.ToString(from.Dynamodb.SequenceNumber), from: from.Dynamodb}
	if key, ok := from.Dynamodb.Keys[f.cfg.PartitionKey].(*types.AttributeValueMemberS); ok {
		c.key = key.Value
	}
	// As JSON a change takes at most about twice the bytes that DynamoDB counts.
	size := recordOverhead + 2*int(aws.ToInt64(from.Dynamodb.SizeBytes))
	c.record = sync.OnceValue(func() record { return record{id: c.id, size: size, change: f.event(from)} })
	return c
}

// part returns which of n workers gets a change, by the hash of its partition key.
func (c *change) part(n int) int {
	hash := sha256.Sum256([]byte(c.key))
	return int(binary.BigEndian.Uint32(hash[:]) % uint32(n))
}

func (f *Feed) event(from types.Record) *events.DynamoDBEventRecord {
	return &events.DynamoDBEventRecord{
		AWSRegion:      f.cfg.Region,
		EventID:        aws.ToString(from.EventID),
		EventName:      string(from.EventName),
		EventSource:    aws.ToString(from.EventSource),
		EventVersion:   aws.ToString(from.EventVersion),
		EventSourceArn: f.cfg.StreamARN,
		UserIdentity:   f.userIdentity(from),
		Change: events.DynamoDBStreamRecord{
			ApproximateCreationDateTime: events.SecondsEpochTime{Time: aws.ToTime(from.Dynamodb.ApproximateCreationDateTime)},
			Keys:                        Image(from.Dynamodb.Keys),
			NewImage:                    Image(from.Dynamodb.NewImage),
			OldImage:                    Image(from.Dynamodb.OldImage),
			SequenceNumber:              aws.ToString(from.Dynamodb.SequenceNumber),
			SizeBytes:                   aws.ToInt64(from.Dynamodb.SizeBytes),
			StreamViewType:              string(from.Dynamodb.StreamViewType),
		},
	}
}

// userIdentity names DynamoDB for the deletion of an item whose time to live was over. The local table deletes expired
// items by an ordinary request, whose record lacks the userIdentity that DynamoDB's own deletions have.
func (f *Feed) userIdentity(from types.Record) *events.DynamoDBUserIdentity {
	ttl, ok := from.Dynamodb.OldImage[f.cfg.TTLAttribute].(*types.AttributeValueMemberN)
	if f.cfg.TTLAttribute == "" || !ok || from.EventName != types.OperationTypeRemove {
		return nil
	}
	at, err := strconv.ParseInt(ttl.Value, 10, 64)
	if err != nil || at > aws.ToTime(from.Dynamodb.ApproximateCreationDateTime).Unix() {
		return nil
	}
	return &events.DynamoDBUserIdentity{Type: "Service", PrincipalID: "dynamodb.amazonaws.com"}
}

// Image converts an image of a stream's record into one of Lambda's event. It keeps nil, which leaves the image out of the event.
func Image(from map[string]types.AttributeValue) map[string]events.DynamoDBAttributeValue {
	if from == nil {
		return nil
	}
	to := make(map[string]events.DynamoDBAttributeValue, len(from))
	for name, value := range from {
		to[name] = convertValue(value)
	}
	return to
}

func convertValue(from types.AttributeValue) events.DynamoDBAttributeValue {
	switch value := from.(type) {
	case *types.AttributeValueMemberS:
		return events.NewStringAttribute(value.Value)
	case *types.AttributeValueMemberN:
		return events.NewNumberAttribute(value.Value)
	case *types.AttributeValueMemberB:
		return events.NewBinaryAttribute(value.Value)
	case *types.AttributeValueMemberBOOL:
		return events.NewBooleanAttribute(value.Value)
	case *types.AttributeValueMemberNULL:
		return events.NewNullAttribute()
	case *types.AttributeValueMemberSS:
		return events.NewStringSetAttribute(value.Value)
	case *types.AttributeValueMemberNS:
		return events.NewNumberSetAttribute(value.Value)
	case *types.AttributeValueMemberBS:
		return events.NewBinarySetAttribute(value.Value)
	case *types.AttributeValueMemberM:
		return events.NewMapAttribute(Image(value.Value))
	case *types.AttributeValueMemberL:
		list := make([]events.DynamoDBAttributeValue, len(value.Value))
		for i, element := range value.Value {
			list[i] = convertValue(element)
		}
		return events.NewListAttribute(list)
	}
	panic(fmt.Sprintf("eventsource: DynamoDB has no attribute type %T", from))
}
