package eventsource

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/go-json-experiment/json"
)

// recordOverhead is about how many bytes a record has in addition to its images or its body.
const recordOverhead = 512

// A record is one change or message, in the type that Lambda's library has for it. Functions of one feed share it.
type record struct {
	shard   string // of a change
	id      string // its name in batchItemFailures
	size    int    // about the bytes of its JSON
	change  *events.DynamoDBEventRecord
	message *events.SQSMessage
}

// fitting returns how many of the records, from the first, one event can take: at most n, and at most 6 MiB, but at
// least one.
func fitting(records []record, n int) int {
	size := 0
	for i, one := range records[:min(n, len(records))] {
		if size += one.size; size > maxPayload && i > 0 {
			return i
		}
	}
	return min(n, len(records))
}

// messageRecord converts a message of a queue.
func messageRecord(from types.Message, queueARN, region string) record {
	message := &events.SQSMessage{
		MessageId:              aws.ToString(from.MessageId),
		ReceiptHandle:          aws.ToString(from.ReceiptHandle),
		Body:                   aws.ToString(from.Body),
		Md5OfBody:              aws.ToString(from.MD5OfBody),
		Md5OfMessageAttributes: aws.ToString(from.MD5OfMessageAttributes),
		Attributes:             from.Attributes,
		MessageAttributes:      make(map[string]events.SQSMessageAttribute, len(from.MessageAttributes)),
		EventSource:            "aws:sqs",
		EventSourceARN:         queueARN,
		AWSRegion:              region,
	}
	for name, attribute := range from.MessageAttributes {
		message.MessageAttributes[name] = events.SQSMessageAttribute{
			DataType: aws.ToString(attribute.DataType), StringValue: attribute.StringValue, BinaryValue: attribute.BinaryValue,
			StringListValues: attribute.StringListValues, BinaryListValues: attribute.BinaryListValues,
		}
	}
	return record{id: message.MessageId, message: message, size: recordOverhead + textSize(message.Body)}
}

// textSize is about the bytes of a text as JSON, in which quotes are escaped.
func textSize(text string) int { return len(text) + strings.Count(text, `"`) }

// changesOf is the event of a batch of changes, with the name of its shard as in a
// tumbling window.
func changesOf(batch []record) events.DynamoDBTimeWindowEvent {
	var event events.DynamoDBTimeWindowEvent
	event.ShardID, event.Records = batch[0].shard, make([]events.DynamoDBEventRecord, len(batch))
	for i := range batch {
		event.Records[i] = *batch[i].change
	}
	return event
}

func messagesOf(batch []record) events.SQSEvent {
	event := events.SQSEvent{Records: make([]events.SQSMessage, len(batch))}
	for i := range batch {
		event.Records[i] = *batch[i].message
	}
	return event
}

// payloadOf is the event of a batch as JSON.
func payloadOf(batch []record) ([]byte, error) {
	var event any
	if batch[0].change != nil {
		event = changesOf(batch)
	} else {
		event = messagesOf(batch)
	}
	payload, err := json.Marshal(event)
	if err != nil {
		return nil, fmt.Errorf("encoding the event: %w", err)
	}
	return payload, nil
}

func contains(batch []record, id string) bool {
	return slices.ContainsFunc(batch, func(r record) bool { return r.id == id })
}
