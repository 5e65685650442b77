package indexing

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/value"
)

// Entry says that a list of an organization has a new document.
type Entry struct {
	OrganizationID value.ID
	List           string
	Document       index.Document
}

// Decoder turns a stream record into the documents that follow from it; none
// for a record that no list shows.
type Decoder func(*events.DynamoDBEventRecord) ([]Entry, error)

// Appender appends to the change log.
type Appender interface {
	AppendTail(ctx context.Context, org value.ID, list string, body []byte) error
}

// Parker takes a stream record that cannot be processed, whole.
type Parker interface {
	Park(ctx context.Context, consumer string, record events.DynamoDBEventRecord, cause error) error
}

// Writer is the indexer: it appends what the stream brings to the change
// logs. Replays are harmless, since the higher revision of a document wins.
type Writer struct {
	log    Appender
	decode Decoder
	park   Parker
	logger *slog.Logger
}

// NewWriter returns a writer.
func NewWriter(log Appender, decode Decoder, park Parker, logger *slog.Logger) *Writer {
	return &Writer{log: log, decode: decode, park: park, logger: logger}
}

type logKey struct {
	org  value.ID
	list string
}

// Handle appends a batch of stream records. A failure of the table fails the
// batch from its first record on, and the stream delivers it again; a record
// that cannot be decoded is parked and the others go on.
func (w *Writer) Handle(ctx context.Context, batch events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	if len(batch.Records) == 0 {
		return events.DynamoDBEventResponse{}, nil
	}
	logs := map[logKey]map[version]index.Document{}
	for i := range batch.Records {
		found, err := w.decode(&batch.Records[i])
		if err != nil {
			if err := w.park.Park(ctx, "indexer", batch.Records[i], err); err != nil {
				return w.retry(ctx, batch, fmt.Errorf("park a record: %w", err))
			}
			continue
		}
		for _, e := range found {
			collect(logs, e)
		}
	}
	for key, documents := range logs {
		for _, body := range entries(sorted(documents)) {
			if err := w.log.AppendTail(ctx, key.org, key.list, body); err != nil {
				return w.retry(ctx, batch, fmt.Errorf("log %d changes of %s: %w", len(documents), key.list, err))
			}
		}
	}
	return events.DynamoDBEventResponse{}, nil
}

// collect keeps the newest revision of each document.
func collect(logs map[logKey]map[version]index.Document, e Entry) {
	key := logKey{e.OrganizationID, e.List}
	if logs[key] == nil {
		logs[key] = map[version]index.Document{}
	}
	document := version{id: e.Document.ID, sub: e.Document.Sub}
	if known, ok := logs[key][document]; !ok || known.Revision <= e.Document.Revision {
		logs[key][document] = e.Document
	}
}

func sorted(documents map[version]index.Document) []index.Document {
	out := make([]index.Document, 0, len(documents))
	for _, d := range documents {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b index.Document) int { return cmp.Compare(a.Revision, b.Revision) })
	return out
}

func (w *Writer) retry(ctx context.Context, batch events.DynamoDBEvent, err error) (events.DynamoDBEventResponse, error) {
	w.logger.ErrorContext(ctx, "stream batch failed", "records", len(batch.Records), "error", err)
	return events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{
		{ItemIdentifier: batch.Records[0].Change.SequenceNumber},
	}}, nil
}
