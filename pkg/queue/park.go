package queue

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"

	"github.com/aws/aws-lambda-go/events"
)

// Attributes of a parked stream record.
const (
	attrConsumer = "consumer" // which function could not process it
	attrCause    = "cause"
	attrEncoding = "encoding" // gzip+base64 when the record would not fit otherwise

	encodingGzip = "gzip+base64"
	maxCause     = 1 << 10
)

// Park is the queue of stream records that our code could not process. It
// keeps each whole, so that it can be replayed.
type Park struct{ queue *Queue }

// NewPark returns the park in the queue.
func NewPark(q *Queue) Park { return Park{q} }

// Park keeps a stream record that the consumer could not process.
func (p Park) Park(ctx context.Context, consumer string, record events.DynamoDBEventRecord, cause error) error {
	// The events package defines its JSON by encoding/json.
	body, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("park a record: %w", err)
	}
	m := Message{Body: string(body), Attributes: map[string]string{
		attrConsumer: consumer, attrCause: printable(cause.Error()),
	}}
	if m.size() > MaxMessage {
		m.Body, m.Attributes[attrEncoding] = pack(body), encodingGzip
	}
	return p.queue.Send(ctx, m)
}

// Unpark reads a parked record.
func Unpark(body string, attributes map[string]string) (consumer string, record events.DynamoDBEventRecord, err error) {
	raw := []byte(body)
	if attributes[attrEncoding] == encodingGzip {
		if raw, err = unpack(body); err != nil {
			return "", record, fmt.Errorf("read a parked record: %w", err)
		}
	}
	if err := json.Unmarshal(raw, &record); err != nil {
		return "", record, fmt.Errorf("read a parked record: %w", err)
	}
	return attributes[attrConsumer], record, nil
}

// ParkedBy reads from a parked record's attributes who could not process it,
// and why; "" where they do not say.
func ParkedBy(attributes map[string]string) (consumer, cause string) {
	return attributes[attrConsumer], attributes[attrCause]
}

func pack(body []byte) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	// Writing to memory does not fail.
	_, _ = w.Write(body)
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func unpack(body string) ([]byte, error) {
	r, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader([]byte(body))))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// printable keeps of a text what SQS takes in an attribute.
func printable(text string) string {
	out := bytes.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff {
			return -1
		}
		return r
	}, bytes.ToValidUTF8([]byte(text[:min(len(text), maxCause)]), nil))
	if len(out) == 0 {
		return "unknown"
	}
	return string(out)
}
