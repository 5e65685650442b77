// Package indexer is the function that turns records of the table's stream
// into list changes and appends them to the tails of the lists.
//
// Replays and records out of order are harmless, since the higher revision of
// a document wins. One batch costs one small write per list, however many
// documents the list has; it has one entry for a document that it changes
// twice. The lists of a batch are written side by side, maxAppends at a time.
// Package compactor moves the tail into segments, and package index describes
// the whole way of a change.
package indexer

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
)

// A job flushes the tail when it has grown by so many entries or bytes, and
// within a week in any case: a flush costs some ten writes, which many changes
// should share, and entries expire after a month.
const (
	flushEntries = 256
	flushBytes   = 256 << 10
	flushWithin  = 7 * 24 * time.Hour
	// maxAppends bounds the lists that are written at a time.
	maxAppends = 16
)

// Storage keeps the tails. It is safe for concurrent use.
type Storage interface {
	// AppendTail appends an entry. It asks for the body before each try, with
	// the position that the entry would get; an error of body ends the attempt.
	AppendTail(ctx context.Context, org value.ID, list string, body func(next index.Position) ([]byte, error)) (index.Position, error)
	RequestJob(ctx context.Context, org value.ID, list string, due value.Time) error
	// RegisterOrganization adds an organization to those that have an index.
	RegisterOrganization(ctx context.Context, org value.ID) error
}

// Decoder turns a stream record into list changes, none for a record that no
// list shows.
type Decoder func(context.Context, *events.DynamoDBEventRecord) ([]ListChange, error)

// Parker keeps stream records that cannot be processed.
type Parker interface {
	Park(ctx context.Context, consumer string, record events.DynamoDBEventRecord, cause error) error
}

// Indexer appends what the stream delivers to the tails of lists.
type Indexer struct {
	storage Storage
	decode  Decoder
	park    Parker
	start   index.Starter
	logger  *slog.Logger
}

// New returns an indexer.
func New(storage Storage, decode Decoder, park Parker, start index.Starter, logger *slog.Logger) *Indexer {
	return &Indexer{storage: storage, decode: decode, park: park, start: start, logger: logger}
}

// Handle appends a batch of stream records. When storage fails, the whole batch
// fails and the stream delivers it again; a record that cannot be decoded is
// parked and the others go on.
func (x *Indexer) Handle(ctx context.Context, batch events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	newest := map[index.Key]map[documentKey]index.Change{}
	for i := range batch.Records {
		found, err := x.decoded(ctx, &batch.Records[i])
		if errors.Is(err, errFields) {
			return x.retry(ctx, batch, err)
		}
		if err != nil {
			if err := x.park.Park(ctx, "indexer", batch.Records[i], err); err != nil {
				return x.retry(ctx, batch, fmt.Errorf("park a record: %w", err))
			}
			continue
		}
		for _, c := range found {
			keepNewest(newest, c)
		}
	}
	err := parallel.UntilError(ctx, maxAppends, maps.All(newest), func(ctx context.Context, key index.Key, documents map[documentKey]index.Change) error {
		if err := x.append(ctx, key, sorted(documents)); err != nil {
			return fmt.Errorf("append %d changes of %s: %w", len(documents), key.List.Name, err)
		}
		return nil
	})
	if err != nil {
		return x.retry(ctx, batch, err)
	}
	return events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}, nil
}

// decoded decodes a record. One that makes the decoder panic is parked as well:
// it would block its shard for good.
func (x *Indexer) decoded(ctx context.Context, r *events.DynamoDBEventRecord) (found []ListChange, err error) {
	defer fault.Recovered(&err)
	return x.decode(ctx, r)
}

// append adds changes to a tail and requests a job when the tail has grown.
func (x *Indexer) append(ctx context.Context, key index.Key, changes []index.Change) error {
	for _, entry := range index.PackEntries(changes) {
		at, err := x.storage.AppendTail(ctx, key.Org, key.List.Name, func(next index.Position) ([]byte, error) {
			return key.SealEntry(next.Sequence, entry), x.prepare(ctx, key, next)
		})
		if err != nil {
			return err
		}
		before := at.Sum - min(at.Sum, uint64(len(entry)))
		if at.Sequence%flushEntries != 0 && at.Sum/flushBytes == before/flushBytes {
			continue
		}
		if err := x.storage.RequestJob(ctx, key.Org, key.List.Name, at.At); err != nil {
			return err
		}
		key.StartJob(ctx, x.start, x.logger)
	}
	return nil
}

// prepare does what must be done before an entry exists, so that an indexer
// that dies leaves nothing undone. Before the first entry of each week it
// requests the job that flushes the entries of that week, and registers the
// organization. The register thus also learns, at little cost, of tails that
// something else began. It has one partition key, which takes 1,000 writes a
// second, so each organization's week of registering begins at its own time.
func (x *Indexer) prepare(ctx context.Context, key index.Key, next index.Position) error {
	if weekTurned(next, registeredFrom(key.Org)) {
		if err := x.storage.RegisterOrganization(ctx, key.Org); err != nil {
			return err
		}
	}
	if !weekTurned(next, 0) {
		return nil
	}
	return x.storage.RequestJob(ctx, key.Org, key.List.Name, next.At.Add(flushWithin))
}

// weekTurned reports whether the entry is the first of its week. Weeks begin so
// much earlier than they do by themselves.
func weekTurned(next index.Position, earlier time.Duration) bool {
	week := func(at value.Time) time.Time { return at.Std().Add(earlier).Truncate(flushWithin) }
	return !week(next.Previous).Equal(week(next.At))
}

// registeredFrom spreads the organizations over a week, by bytes of their ids
// that are random.
func registeredFrom(org value.ID) time.Duration {
	const seconds = uint32(flushWithin / time.Second)
	return time.Duration(binary.BigEndian.Uint32(org[12:])%seconds) * time.Second
}

// documentKey names a document within a list.
type documentKey struct {
	partition int32
	id        [16]byte
	sub       uint8
}

// keepNewest keeps the newest revision of each document.
func keepNewest(newest map[index.Key]map[documentKey]index.Change, c ListChange) {
	if newest[c.Key] == nil {
		newest[c.Key] = map[documentKey]index.Change{}
	}
	key := documentKey{c.Partition, c.ID, c.Sub}
	if known, ok := newest[c.Key][key]; !ok || known.Revision <= c.Revision {
		newest[c.Key][key] = c.Change
	}
}

// sorted puts changes in the order of their revisions, those of one partition
// together, which packs well.
func sorted(changes map[documentKey]index.Change) []index.Change {
	return slices.SortedFunc(maps.Values(changes), func(a, b index.Change) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Revision, b.Revision))
	})
}

// retry has the stream deliver the batch again, from its first record on.
func (x *Indexer) retry(ctx context.Context, batch events.DynamoDBEvent, err error) (events.DynamoDBEventResponse, error) {
	x.logger.ErrorContext(ctx, "stream batch failed", "records", len(batch.Records), "error", err)
	return events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{
		{ItemIdentifier: batch.Records[0].Change.SequenceNumber},
	}}, nil
}
