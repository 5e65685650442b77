package eventsource

import (
	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json/jsontext"
)

// A record is one change or message as the function will get it: as JSON, or in the event's type if the function takes
// that. One of event, change and message is set.
type record struct {
	id      string // its name in batchItemFailures
	receipt string // of a message
	size    int    // bytes of its JSON; about as many where there is none

	event   jsontext.Value
	change  *events.DynamoDBEventRecord
	message *events.SQSMessage
}

// fitting returns how many of the records, from the first, one event can take: at most n, and at most 6 MiB, but at
// least one.
func fitting(records []record, n int) int {
	size := len(envelope(nil))
	for i, one := range records[:min(n, len(records))] {
		if size += one.size + 1; size > maxPayload && i > 0 {
			return i
		}
	}
	return min(n, len(records))
}

// envelope joins encoded records into the event {"Records":[…]}.
func envelope(records []record) []byte {
	size := 16
	for _, one := range records {
		size += len(one.event) + 1
	}
	payload := append(make([]byte, 0, size), `{"Records":[`...)
	for i, one := range records {
		if i > 0 {
			payload = append(payload, ',')
		}
		payload = append(payload, one.event...)
	}
	return append(payload, `]}`...)
}

func changesOf(batch []record) events.DynamoDBEvent {
	event := events.DynamoDBEvent{Records: make([]events.DynamoDBEventRecord, len(batch))}
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
