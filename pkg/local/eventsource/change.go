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

// A recordFormat converts the stream's records into those of Lambda's events.
type recordFormat struct {
	streamARN    string
	region       string
	ttlAttribute string
	partitionKey string
}

// A change is one record of a stream. It is converted for the first source that wants it, and then for all.
type change struct {
	id     string // the sequence number
	weight int    // about its bytes
	from   *types.StreamRecord
	record func() record
}

func (f recordFormat) change(from types.Record) (*change, error) {
	if from.Dynamodb == nil || aws.ToString(from.Dynamodb.SequenceNumber) == "" {
		return nil, fmt.Errorf("stream record %q has no sequence number", aws.ToString(from.EventID))
	}
	c := &change{id: aws.ToString(from.Dynamodb.SequenceNumber), from: from.Dynamodb}
	c.weight = recordOverhead + weigh(from.Dynamodb.Keys) + weigh(from.Dynamodb.NewImage) + weigh(from.Dynamodb.OldImage)
	c.record = sync.OnceValue(func() record { return record{id: c.id, size: c.weight, change: f.event(from)} })
	return c, nil
}

// worker returns which of n workers gets a change, by its partition key.
func (f recordFormat) worker(c *change, n int) int {
	if n == 1 {
		return 0
	}
	var key string
	if value, ok := c.from.Keys[f.partitionKey].(*types.AttributeValueMemberS); ok {
		key = value.Value
	}
	hash := sha256.Sum256([]byte(key))
	return int(binary.BigEndian.Uint32(hash[:]) % uint32(n))
}

func (f recordFormat) event(from types.Record) *events.DynamoDBEventRecord {
	return &events.DynamoDBEventRecord{
		AWSRegion:      f.region,
		EventID:        aws.ToString(from.EventID),
		EventName:      string(from.EventName),
		EventSource:    aws.ToString(from.EventSource),
		EventVersion:   aws.ToString(from.EventVersion),
		EventSourceArn: f.streamARN,
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
func (f recordFormat) userIdentity(from types.Record) *events.DynamoDBUserIdentity {
	ttl, ok := from.Dynamodb.OldImage[f.ttlAttribute].(*types.AttributeValueMemberN)
	if f.ttlAttribute == "" || !ok || from.EventName != types.OperationTypeRemove {
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

// weigh estimates the bytes of attributes as JSON.
func weigh(attributes map[string]types.AttributeValue) int {
	sum := 0
	for name, value := range attributes {
		sum += len(name) + len(`"":{"S":""},`) + weighValue(value)
	}
	return sum
}

func weighValue(of types.AttributeValue) (sum int) {
	switch value := of.(type) {
	case *types.AttributeValueMemberS:
		sum = textSize(value.Value)
	case *types.AttributeValueMemberN:
		sum = len(value.Value)
	case *types.AttributeValueMemberB:
		sum = len(value.Value) * 4 / 3
	case *types.AttributeValueMemberSS:
		for _, text := range value.Value {
			sum += len(`"",`) + textSize(text)
		}
	case *types.AttributeValueMemberM:
		sum = weigh(value.Value)
	case *types.AttributeValueMemberL:
		for _, one := range value.Value {
			sum += len(`{"S":""},`) + weighValue(one)
		}
	}
	return sum
}
