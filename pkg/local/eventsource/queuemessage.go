package eventsource

import (
	"fmt"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A messageFormat converts the queue's messages into the records of Lambda's events.
type messageFormat struct {
	queueARN string
	region   string
	filter   filter
	asJSON   bool // the function takes JSON, not the type
}

// convert returns the message and whether it passes the filter.
func (f messageFormat) convert(from types.Message) (record, bool, error) {
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
	if !f.asJSON && len(f.filter) == 0 {
		return r, true, nil
	}
	encoded, err := json.Marshal(event)
	if err != nil {
		return record{}, false, fmt.Errorf("encoding message %s: %w", event.MessageId, err)
	}
	if f.asJSON {
		r.event, r.message, r.size = encoded, nil, len(encoded)
	}
	if len(f.filter) == 0 {
		return r, true, nil
	}
	var tree map[string]any
	if err := json.Unmarshal(encoded, &tree); err != nil {
		return record{}, false, fmt.Errorf("filtering message %s: %w", event.MessageId, err)
	}
	tree["body"] = filterBody(event.Body)
	return r, f.filter.passes(tree), nil
}

// filterBody returns the body as a filter sees it: a JSON object or array decoded, anything else as text. A pattern for
// the one never matches the other.
func filterBody(body string) any {
	var tree any
	if !utf8.ValidString(body) || json.Unmarshal([]byte(body), &tree, jsontext.AllowDuplicateNames(true)) != nil || isScalar(tree) {
		return body
	}
	return tree
}
