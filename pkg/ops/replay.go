package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/dispatcher"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/indexer"
	"github.com/commerce-integration/service/pkg/queue"
)

// Names of the stream's consumers in parked records.
const (
	Dispatcher = "dispatcher"
	Indexer    = "indexer"
)

// ParkedGroup is what CountParked counts by.
type ParkedGroup struct{ Consumer, Reason string }

// CountParked counts the parked records of a consumer, "" for all, by reason.
// IDs in a reason do not count.
func CountParked(ctx context.Context, scan *QueueScan, only string) (*GroupCounts[ParkedGroup], error) {
	counts := newGroupCounts[ParkedGroup]()
	id := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	return counts, scan.Run(ctx, scanWorkers, func(_ context.Context, batch []Message) ([]Message, error) {
		for _, m := range batch {
			consumer, cause := queue.ParkedBy(m.Attributes)
			if only == "" || only == consumer {
				counts.add(ParkedGroup{consumer, id.ReplaceAllLiteralString(FirstLine(cause), "…")}, m.SentAt)
			}
		}
		return nil, nil
	})
}

// Replay hands parked stream records to their consumers, which it sets up as
// the functions do, except that a record that fails again stays in the park.
type Replay struct {
	Table      *dynamo.Table
	Deliveries queue.Deliveries
	IndexJobs  queue.IndexJobs
	Topic      dispatcher.Topic // of alerts; nil: they reach endpoints alone
	Consumer   string           // only this one's records, "" for all
	// Failed is called for each record that failed again, never twice at a time.
	Failed func(record string, err error)

	mu               sync.Mutex
	replayed, failed int
}

// Run replays what the scan finds and takes. Repeating a record that was
// replayed before has no effect.
func (r *Replay) Run(ctx context.Context, scan *QueueScan) (replayed, failed int, err error) {
	err = scan.Run(ctx, scanWorkers, func(ctx context.Context, batch []Message) (done []Message, err error) {
		for consumer, records := range r.read(scan, batch) {
			done = append(done, r.replay(ctx, consumer, records)...)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.replayed += len(done)
		return done, ctx.Err()
	})
	return r.replayed, r.failed, err
}

type parkedRecord struct {
	Message
	record events.DynamoDBEventRecord
}

// read groups the records of a batch by consumer, as many as the scan's limit
// allows. The others stay in the park.
func (r *Replay) read(scan *QueueScan, batch []Message) map[string][]parkedRecord {
	byConsumer := map[string][]parkedRecord{}
	for _, m := range batch {
		consumer, _ := queue.ParkedBy(m.Attributes)
		if r.Consumer != "" && consumer != r.Consumer {
			continue
		}
		if !scan.Take() {
			break
		}
		_, record, err := queue.Unpark(m.Body, m.Attributes)
		if err == nil && consumer != Dispatcher && consumer != Indexer {
			err = fmt.Errorf("it says that %q parked it, which must be dispatcher or indexer", consumer)
		}
		if err != nil {
			r.fail("message "+m.ID, err)
			continue
		}
		byConsumer[consumer] = append(byConsumer[consumer], parkedRecord{m, record})
	}
	return byConsumer
}

// replay hands over records together and, if that fails, one by one, to find
// out which fail and why. It returns the messages of those that succeeded.
func (r *Replay) replay(ctx context.Context, consumer string, records []parkedRecord) (done []Message) {
	batch := make([]events.DynamoDBEventRecord, len(records))
	for i, p := range records {
		batch[i] = p.record
		done = append(done, p.Message)
	}
	err := r.handle(ctx, consumer, batch)
	switch {
	case err == nil:
		return done
	case ctx.Err() != nil: // interrupted, not failed
		return nil
	case len(records) == 1:
		r.fail(consumer+" "+itemName(&batch[0]), err)
		return nil
	}
	done = nil
	for i := range records {
		done = append(done, r.replay(ctx, consumer, records[i:i+1])...)
	}
	return done
}

func (r *Replay) fail(record string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed++
	r.Failed(record, err)
}

// itemName names the item whose change a stream record is.
func itemName(r *events.DynamoDBEventRecord) string {
	var names []string
	for _, key := range []string{"PK", "SK"} {
		if v, ok := r.Change.Keys[key]; ok && v.DataType() == events.DataTypeString {
			names = append(names, v.String())
		}
	}
	if len(names) == 0 {
		return "sequence " + r.Change.SequenceNumber
	}
	return strings.Join(names, "/")
}

// consumerTimeout bounds one call of a consumer. A batch, and then each of its
// records, is finished before its messages can become visible.
const consumerTimeout = 20 * time.Second

// handle has a consumer process records. After an error one of them, at least,
// failed.
func (r *Replay) handle(ctx context.Context, consumer string, records []events.DynamoDBEventRecord) (err error) {
	defer fault.Recovered(&err)
	ctx, cancel := context.WithTimeout(ctx, consumerTimeout)
	defer cancel()
	f := &failureRecorder{}
	dispatch := dispatcher.New(r.Table, r.Deliveries, f, time.Now, f.logger())
	dispatch.Topic = r.Topic
	handle := dispatch.Handle
	if consumer == Indexer {
		handle = indexer.New(r.Table, r.withoutOutdated(), f, r.IndexJobs, f.logger()).Handle
	}
	response, err := handle(ctx, events.DynamoDBEvent{Records: records})
	switch {
	case err != nil:
		return err
	case f.parked != nil:
		return f.parked
	case len(response.BatchItemFailures) > 0:
		return cmp.Or(f.logged, errors.New("the consumer failed"))
	}
	return nil
}

// withoutOutdated decodes as the indexer does, but leaves out documents that a
// later change of their record has replaced. The stream delivers changes in
// order and within a day, so the index soon forgets what it removed; a parked
// change may come days later and would restore it. Removals remain: no other
// change removes the same documents.
func (r *Replay) withoutOutdated() indexer.Decoder {
	decode := indexer.DecodeFor(index.NewLists(r.Table, dynamo.Shards), dynamo.Stream{}, r.Table)
	return func(ctx context.Context, record *events.DynamoDBEventRecord) ([]indexer.ListChange, error) {
		found, err := decode(ctx, record)
		if err != nil {
			return nil, err
		}
		change, err := dynamo.Stream{}.RecordChange(record)
		if err != nil || change == nil {
			return found, err
		}
		parked := change.New
		stored, err := r.Table.Records(ctx, change.New.OrganizationID, parked.Kind, []value.ID{parked.ID})
		if err != nil {
			return nil, fmt.Errorf("read the record as it is now: %w", err)
		}
		if now := stored[parked.ID]; now != nil && now.Revision <= parked.Revision {
			return found, nil
		}
		return slices.DeleteFunc(found, func(c indexer.ListChange) bool { return !c.Document.Deleted }), nil
	}
}

// failureRecorder replaces the park and the log during one call of a consumer,
// to learn why a record failed. The record is in the park already.
type failureRecorder struct {
	mu             sync.Mutex
	parked, logged error
}

// Park implements the consumers' Parker.
func (f *failureRecorder) Park(_ context.Context, _ string, _ events.DynamoDBEventRecord, cause error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parked = cause
	return nil
}

// logger returns a logger that only keeps the last error.
func (f *failureRecorder) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{ //nolint:sloglint // DiscardHandler has no ReplaceAttr
		Level: slog.LevelError,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if err, ok := a.Value.Any().(error); ok {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.logged = err
			}
			return a
		},
	}))
}
