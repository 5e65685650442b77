package indexing

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
)

// Entry says that a part of an organization's list has a new document.
type ListChange struct {
	OrganizationID value.ID
	List           *List
	Part           int32
	Document       columnar.Document
}

// Decoder turns a stream record into the documents that follow from it; none
// for a record that no list shows.
type Decoder func(*events.DynamoDBEventRecord) ([]ListChange, error)

// Parker takes a stream record that cannot be processed, whole.
type Parker interface {
	Park(ctx context.Context, consumer string, record events.DynamoDBEventRecord, cause error) error
}

// Starter asks for a job of a list to be run soon. That a job is wanted stands
// in the table already: a start that fails or is lost only delays it.
type Starter interface {
	Send(ctx context.Context, organization value.ID, list string) error
}

// Writer is the indexer: it appends what the stream brings to the tails of
// lists. Replays are harmless, since the higher revision of a document wins.
type Indexer struct {
	table  *dynamo.Table
	decode Decoder
	park   Parker
	start  Starter
	logger *slog.Logger
}

// NewWriter returns a writer.
func NewIndexer(table *dynamo.Table, decode Decoder, park Parker, start Starter, logger *slog.Logger) *Indexer {
	return &Indexer{table: table, decode: decode, park: park, start: start, logger: logger}
}

// A job folds the tail into segments when it has grown by so many entries or
// bytes, and in any case within a week: a fold costs some ten writes, which are
// to be shared by many changes, and entries expire after a month.
const (
	foldEntries = 256
	foldBytes   = 256 << 10
	foldWithin  = 7 * 24 * time.Hour
)

type listKey struct {
	org  value.ID
	list *List
}

// Handle appends a batch of stream records. A failure of the table fails the
// batch from its first record on, and the stream delivers it again; a record
// that cannot be decoded is parked and the others go on.
func (w *Indexer) Handle(ctx context.Context, batch events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	if len(batch.Records) == 0 {
		return events.DynamoDBEventResponse{}, nil
	}
	changes := map[listKey]map[docKey]placed{}
	for i := range batch.Records {
		found, err := w.decoded(&batch.Records[i])
		if err != nil {
			if err := w.park.Park(ctx, "indexer", batch.Records[i], err); err != nil {
				return w.retry(ctx, batch, fmt.Errorf("park a record: %w", err))
			}
			continue
		}
		for _, e := range found {
			collect(changes, e)
		}
	}
	for key, documents := range changes {
		if err := w.append(ctx, key.org, key.list, sorted(documents)); err != nil {
			return w.retry(ctx, batch, fmt.Errorf("append %d changes of %s: %w", len(documents), key.list.Name, err))
		}
	}
	return events.DynamoDBEventResponse{}, nil
}

// decoded decodes a record. One that makes the decoder panic is parked as well:
// it would stop its shard for good.
func (w *Indexer) decoded(r *events.DynamoDBEventRecord) (found []ListChange, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return w.decode(r)
}

// append adds documents to a tail, and wants a job where it is time for one.
func (w *Indexer) append(ctx context.Context, org value.ID, list *List, documents []placed) error {
	key := listKey{org, list}
	for _, content := range entries(documents) {
		appended, err := w.table.AppendTail(ctx, org, list.Name, func(next dynamo.Appended) ([]byte, error) {
			return key.seal(next.Sequence, content), w.prepare(ctx, org, list, next.Previous, next.At)
		})
		if err != nil {
			return err
		}
		before := appended.Sum - min(appended.Sum, uint64(len(content)))
		if appended.Sequence%foldEntries != 0 && appended.Sum/foldBytes == before/foldBytes {
			continue
		}
		if err := w.table.RequestJob(ctx, org, list.Name, appended.At); err != nil {
			return err
		}
		if err := w.start.Send(ctx, org, list.Name); err != nil {
			w.logger.WarnContext(ctx, "a job starts late", "organizationId", org, "list", list.Name, "error", err)
		}
	}
	return nil
}

// prepare does what must have been done by the time at which an entry is there,
// so that nothing is left behind by a writer that dies. The job that folds the
// first entry of a week, and all others of it, is wanted before that entry;
// and before the first entry of a tail, its organization is registered. That
// is done with each first entry of a week: for little, it also enters who has
// a tail that this writer did not begin.
func (w *Indexer) prepare(ctx context.Context, org value.ID, list *List, previous, at value.Time) error {
	if previous.Std().Truncate(foldWithin).Equal(at.Std().Truncate(foldWithin)) {
		return nil
	}
	if err := w.table.RegisterOrganization(ctx, org); err != nil {
		return err
	}
	return w.table.RequestJob(ctx, org, list.Name, at.Add(foldWithin))
}

// docKey names a document within a part of a list.
type docKey struct {
	part int32
	id   [16]byte
	sub  uint8
}

// collect keeps the newest revision of each document.
func collect(changes map[listKey]map[docKey]placed, e ListChange) {
	list := listKey{e.OrganizationID, e.List}
	if changes[list] == nil {
		changes[list] = map[docKey]placed{}
	}
	key := docKey{e.Part, e.Document.ID, e.Document.Sub}
	if known, ok := changes[list][key]; !ok || known.Revision <= e.Document.Revision {
		changes[list][key] = placed{e.Part, e.Document}
	}
}

// sorted puts documents in the order of their revisions, and those of one
// part together, which packs well.
func sorted(documents map[docKey]placed) []placed {
	out := make([]placed, 0, len(documents))
	for _, d := range documents {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.Revision, b.Revision))
	})
	return out
}

func (w *Indexer) retry(ctx context.Context, batch events.DynamoDBEvent, err error) (events.DynamoDBEventResponse, error) {
	w.logger.ErrorContext(ctx, "stream batch failed", "records", len(batch.Records), "error", err)
	return events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{
		{ItemIdentifier: batch.Records[0].Change.SequenceNumber},
	}}, nil
}
