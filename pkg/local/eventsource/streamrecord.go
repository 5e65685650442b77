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
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// recordOverhead is about how many bytes a record has beside its images or its body.
const recordOverhead = 512

// A recordFormat converts the stream's records into those of Lambda's events.
type recordFormat struct {
	streamARN    string
	region       string
	ttlAttribute string
	partitionKey string
}

// A change is one record of a stream. Its images are converted for the first source that wants it, and then for all.
type change struct {
	id     string // the sequence number
	weight int    // about its bytes
	from   *types.StreamRecord

	event     events.DynamoDBEventRecord // without images until converted
	converted func() error
	encoded   func() (jsontext.Value, error)
	members   func() map[string]any // for filters
}

// change converts a stream record, all but its images.
func (f recordFormat) change(from types.Record) (*change, error) {
	if from.Dynamodb == nil || aws.ToString(from.Dynamodb.SequenceNumber) == "" {
		return nil, fmt.Errorf("stream record %q has no sequence number", aws.ToString(from.EventID))
	}
	event := f.event(from)
	c := &change{id: event.Change.SequenceNumber, from: from.Dynamodb, event: event}
	c.weight = recordOverhead + weigh(from.Dynamodb.Keys) + weigh(from.Dynamodb.NewImage) + weigh(from.Dynamodb.OldImage)
	c.converted, c.encoded = sync.OnceValue(c.convert), sync.OnceValues(c.encode)
	c.members = sync.OnceValue(c.listMembers)
	return c, nil
}

func (c *change) convert() error {
	for _, image := range []struct {
		to   *map[string]events.DynamoDBAttributeValue
		from map[string]types.AttributeValue
	}{
		{&c.event.Change.Keys, c.from.Keys},
		{&c.event.Change.NewImage, c.from.NewImage},
		{&c.event.Change.OldImage, c.from.OldImage},
	} {
		converted, err := convertMap(image.from)
		if err != nil {
			return fmt.Errorf("converting stream record %s: %w", c.id, err)
		}
		*image.to = converted
	}
	return nil
}

func (c *change) encode() (jsontext.Value, error) {
	if err := c.converted(); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(c.event)
	if err != nil {
		return nil, fmt.Errorf("encoding stream record %s: %w", c.id, err)
	}
	return encoded, nil
}

// record returns the change as JSON, or in the event's type.
func (c *change) record(asJSON bool) (record, error) {
	r := record{id: c.id}
	if !asJSON {
		r.change, r.size = &c.event, c.weight
		return r, c.converted()
	}
	encoded, err := c.encoded()
	r.event, r.size = encoded, len(encoded)
	return r, err
}

// worker returns which of a shard's n workers gets a record, by its partition key.
func (f recordFormat) worker(c *change, n int) int {
	if n == 1 {
		return 0
	}
	var key []byte
	switch value := c.from.Keys[f.partitionKey].(type) {
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

// event returns the record without its images.
func (f recordFormat) event(from types.Record) events.DynamoDBEventRecord {
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
	switch {
	case from.UserIdentity != nil:
		event.UserIdentity = &events.DynamoDBUserIdentity{
			Type: aws.ToString(from.UserIdentity.Type), PrincipalID: aws.ToString(from.UserIdentity.PrincipalId),
		}
	case f.expired(from):
		event.UserIdentity = &events.DynamoDBUserIdentity{Type: "Service", PrincipalID: "dynamodb.amazonaws.com"}
	}
	return event
}

// expired reports whether a record is the deletion of an item whose time to live was over. The local table deletes
// expired items by an ordinary request, whose record lacks the userIdentity that DynamoDB's own deletions have.
func (f recordFormat) expired(from types.Record) bool {
	ttl, ok := from.Dynamodb.OldImage[f.ttlAttribute].(*types.AttributeValueMemberN)
	if f.ttlAttribute == "" || !ok || from.EventName != types.OperationTypeRemove {
		return false
	}
	at, err := strconv.ParseInt(ttl.Value, 10, 64)
	return err == nil && at <= aws.ToTime(from.Dynamodb.ApproximateCreationDateTime).Unix()
}
