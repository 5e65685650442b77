package eventsource

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A record is one change as the function will get it.
type record struct {
	id      string // what batchItemFailures names it by: the sequence number
	created time.Time
	event   jsontext.Value
}

// A recordFormat turns what the stream gives into what Lambda gives.
type recordFormat struct {
	streamARN    string
	region       string
	ttlAttribute string
	partitionKey string
	filter       filter
}

// part is to which of n parts a record belongs, by its partition key.
func (f recordFormat) part(of types.Record, n int) int {
	if n == 1 {
		return 0
	}
	var key []byte
	switch value := of.Dynamodb.Keys[f.partitionKey].(type) {
	case *types.AttributeValueMemberS:
		key = []byte(value.Value)
	case *types.AttributeValueMemberN:
		key = []byte(value.Value)
	case *types.AttributeValueMemberB:
		key = value.Value
	}
	hash := sha256.Sum256(key)
	return int(binary.BigEndian.Uint32(hash[:]) % uint32(n))
}

// convert returns the record and whether it passes the filter.
func (f recordFormat) convert(from types.Record) (record, bool, error) {
	if from.Dynamodb == nil || aws.ToString(from.Dynamodb.SequenceNumber) == "" {
		return record{}, false, fmt.Errorf("stream record %q has no sequence number", aws.ToString(from.EventID))
	}
	event, err := f.event(from)
	if err != nil {
		return record{}, false, fmt.Errorf("converting stream record %s: %w", *from.Dynamodb.SequenceNumber, err)
	}
	encoded, err := json.Marshal(event)
	if err != nil {
		return record{}, false, fmt.Errorf("encoding stream record %s: %w", *from.Dynamodb.SequenceNumber, err)
	}
	converted := record{id: event.Change.SequenceNumber, created: event.Change.ApproximateCreationDateTime.Time, event: encoded}
	if len(f.filter) == 0 {
		return converted, true, nil
	}
	var tree any
	if err := json.Unmarshal(encoded, &tree); err != nil {
		return record{}, false, fmt.Errorf("filtering stream record %s: %w", converted.id, err)
	}
	return converted, f.filter.passes(tree), nil
}

func (f recordFormat) event(from types.Record) (events.DynamoDBEventRecord, error) {
	event := events.DynamoDBEventRecord{
		AWSRegion:      f.region,
		EventID:        aws.ToString(from.EventID),
		EventName:      string(from.EventName),
		EventSource:    aws.ToString(from.EventSource),
		EventVersion:   aws.ToString(from.EventVersion),
		EventSourceArn: f.streamARN,
		Change: events.DynamoDBStreamRecord{
			ApproximateCreationDateTime: events.SecondsEpochTime{Time: aws.ToTime(from.Dynamodb.ApproximateCreationDateTime)},
			SequenceNumber:              aws.ToString(from.Dynamodb.SequenceNumber),
			SizeBytes:                   aws.ToInt64(from.Dynamodb.SizeBytes),
			StreamViewType:              string(from.Dynamodb.StreamViewType),
		},
	}
	if event.AWSRegion == "" {
		event.AWSRegion = aws.ToString(from.AwsRegion)
	}
	for _, image := range []struct {
		to   *map[string]events.DynamoDBAttributeValue
		from map[string]types.AttributeValue
	}{
		{&event.Change.Keys, from.Dynamodb.Keys},
		{&event.Change.NewImage, from.Dynamodb.NewImage},
		{&event.Change.OldImage, from.Dynamodb.OldImage},
	} {
		converted, err := convertMap(image.from)
		if err != nil {
			return event, err
		}
		*image.to = converted
	}
	switch {
	case from.UserIdentity != nil:
		event.UserIdentity = &events.DynamoDBUserIdentity{
			Type: aws.ToString(from.UserIdentity.Type), PrincipalID: aws.ToString(from.UserIdentity.PrincipalId),
		}
	case f.expired(from):
		event.UserIdentity = &events.DynamoDBUserIdentity{Type: "Service", PrincipalID: "dynamodb.amazonaws.com"}
	}
	return event, nil
}

// expired says whether a record is the deletion of an item whose time to live was over. The local table has its expired
// items deleted by an ordinary request, whose record does not say what DynamoDB's own would.
func (f recordFormat) expired(from types.Record) bool {
	ttl, ok := from.Dynamodb.OldImage[f.ttlAttribute].(*types.AttributeValueMemberN)
	if f.ttlAttribute == "" || !ok || from.EventName != types.OperationTypeRemove {
		return false
	}
	at, err := strconv.ParseInt(ttl.Value, 10, 64)
	return err == nil && at <= aws.ToTime(from.Dynamodb.ApproximateCreationDateTime).Unix()
}

// convertMap keeps nil, which leaves the image out of the event.
func convertMap(from map[string]types.AttributeValue) (map[string]events.DynamoDBAttributeValue, error) {
	if from == nil {
		return nil, nil
	}
	to := make(map[string]events.DynamoDBAttributeValue, len(from))
	for name, value := range from {
		converted, err := convertValue(value)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", name, err)
		}
		to[name] = converted
	}
	return to, nil
}

func convertValue(from types.AttributeValue) (events.DynamoDBAttributeValue, error) {
	switch value := from.(type) {
	case *types.AttributeValueMemberS:
		return events.NewStringAttribute(value.Value), nil
	case *types.AttributeValueMemberN:
		return events.NewNumberAttribute(value.Value), nil
	case *types.AttributeValueMemberB:
		return events.NewBinaryAttribute(value.Value), nil
	case *types.AttributeValueMemberBOOL:
		return events.NewBooleanAttribute(value.Value), nil
	case *types.AttributeValueMemberNULL:
		return events.NewNullAttribute(), nil
	case *types.AttributeValueMemberSS:
		return events.NewStringSetAttribute(value.Value), nil
	case *types.AttributeValueMemberNS:
		return events.NewNumberSetAttribute(value.Value), nil
	case *types.AttributeValueMemberBS:
		return events.NewBinarySetAttribute(value.Value), nil
	case *types.AttributeValueMemberM:
		converted, err := convertMap(value.Value)
		return events.NewMapAttribute(converted), err
	case *types.AttributeValueMemberL:
		list := make([]events.DynamoDBAttributeValue, 0, len(value.Value))
		for i, element := range value.Value {
			converted, err := convertValue(element)
			if err != nil {
				return events.DynamoDBAttributeValue{}, fmt.Errorf("element %d: %w", i, err)
			}
			list = append(list, converted)
		}
		return events.NewListAttribute(list), nil
	}
	return events.DynamoDBAttributeValue{}, fmt.Errorf("unknown attribute type %T", from)
}
