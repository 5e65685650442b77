package eventsource

import (
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/go-json-experiment/json"
)

// A messageFormat converts the queue's messages into the records of Lambda's events.
type messageFormat struct {
	queueARN string
	region   string
	asJSON   bool // the function takes JSON, not the type
}

func (f messageFormat) convert(from types.Message) (record, error) {
	event := &events.SQSMessage{
		MessageId:              aws.ToString(from.MessageId),
		ReceiptHandle:          aws.ToString(from.ReceiptHandle),
		Body:                   aws.ToString(from.Body),
		Md5OfBody:              aws.ToString(from.MD5OfBody),
		Md5OfMessageAttributes: aws.ToString(from.MD5OfMessageAttributes),
		Attributes:             from.Attributes,
		MessageAttributes:      make(map[string]events.SQSMessageAttribute, len(from.MessageAttributes)),
		EventSource:            "aws:sqs",
		EventSourceARN:         f.queueARN,
		AWSRegion:              f.region,
	}
	for name, attribute := range from.MessageAttributes {
		event.MessageAttributes[name] = events.SQSMessageAttribute{
			DataType: aws.ToString(attribute.DataType), StringValue: attribute.StringValue, BinaryValue: attribute.BinaryValue,
			StringListValues: attribute.StringListValues, BinaryListValues: attribute.BinaryListValues,
		}
	}
	r := record{id: event.MessageId, receipt: event.ReceiptHandle, message: event, size: recordOverhead + len(event.Body)}
	if !f.asJSON {
		return r, nil
	}
	encoded, err := json.Marshal(event)
	if err != nil {
		return record{}, fmt.Errorf("encoding message %s: %w", event.MessageId, err)
	}
	r.event, r.message, r.size = encoded, nil, len(encoded)
	return r, nil
}
