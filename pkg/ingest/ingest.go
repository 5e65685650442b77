// Package ingest applies the messages of back offices: it turns them into
// conditional writes of records, from which events and lists follow.
//
// A message is done when each of its records is stored or refused. If the
// table does not take a write, the message comes again, after seconds at
// first, and applying it again changes nothing. A refused record never holds
// up its neighbours. The messages of a batch share calls of the table; each is
// done, or comes again, on its own. A record whose id was made within the last ten
// minutes is put without a read before. Messages of many records move to a queue
// of their own, so that an import does not keep single records waiting. Messages
// of an organization that still has keys of signed senders are refused, unless
// they were posted to the API: signatures are not checked any more. What became of
// posted records is in their receipt, which the first message to be done completes:
// one that comes again, or twice, changes it no more. Another message gets a receipt
// if records of it are refused, so that the organization's people see why.
// That is one write, of at most 1.5 KB for each of the first 100 refused records,
// and however many messages are refused, the receipts of an organization share
// its partitions evenly and expire. After the receipt all refused records go to
// their queue.
// Adjustments of one row of stock are stored together, in transactions of their own.
// Package commerce decides what a record must look like and which change wins.
package ingest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/deadline"
	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/dynamo"
)

const (
	maxParallelWrites  = 16
	maxParallelRejects = 4 // messages whose refusals are sent at a time
	// maxDirectBytes is the size up to which a message is applied directly. A
	// larger one has many records, which take seconds when the table is busy,
	// and moves to the imports queue.
	maxDirectBytes = 32 << 10
	// maxWriteConflicts is how often a write is tried because another writer
	// changed the record; then the message goes back to the queue.
	maxWriteConflicts = 10
)

// Store keeps records. A write fails with [fault.ErrChanged] when the stored
// record is not the previous one, which PutRecord tells by [dynamo.Changed];
// CreateRecords expects none. Each record of a call succeeds or fails on its own.
type Store interface {
	// SendsUnsigned reports that ReadRecords found no keys of signed senders.
	SendsUnsigned(org value.ID) bool
	ReadRecords(ctx context.Context, refs []dynamo.RecordRef) []dynamo.Found
	CreateRecords(ctx context.Context, records []*commerce.Stored) []error
	PutRecord(ctx context.Context, previous, next *commerce.Stored) error
	// Record returns nil when there is none.
	Record(ctx context.Context, org value.ID, kind commerce.Kind, id value.ID) (*commerce.Stored, error)
	StockRow(ctx context.Context, org, id value.ID, adjustments []commerce.Change) (*commerce.StockRow, error)
	// AdjustStock is not done when the row is not as it was read.
	AdjustStock(ctx context.Context, org, id value.ID, row *commerce.StockRow, next *commerce.Adjusted) (done bool, err error)
	// Receipt returns nil when there is none.
	Receipt(ctx context.Context, org, id value.ID) (*receipt.Stored, error)
	// CompleteReceipt does nothing to one that was completed.
	CompleteReceipt(ctx context.Context, s *receipt.Stored) error
	// CreateReceipt does nothing when there is one with the id.
	CreateReceipt(ctx context.Context, s *receipt.Stored) error
}

// Rejects takes refused records.
type Rejects interface {
	Reject(ctx context.Context, sourceMessageID string, refusals []commerce.Refusal) error
}

// Queues are the records queue and the imports queue.
type Queues interface {
	// Move sends messages on to the imports queue.
	Move(ctx context.Context, messages ...*events.SQSMessage) error
	// Moved reports whether a message came by the imports queue.
	Moved(m *events.SQSMessage) bool
	// Origin returns the id of a message when it was first sent, "" when that is not
	// known, and when that was, 0 when that is not known.
	Origin(m *events.SQSMessage) (messageID string, arrived value.Time)
	// SendLater sends a message of an organization to the records queue.
	SendLater(ctx context.Context, org value.ID, body []byte, delay time.Duration) error
	// Postpone changes the messages' visibility: they come again later, the
	// later the more often they were received.
	Postpone(ctx context.Context, messages ...*events.SQSMessage) error
}

// Ingester applies messages. It is safe for concurrent use.
type Ingester struct {
	store   Store
	rejects Rejects
	queues  Queues
	clock   func() time.Time
	logger  *slog.Logger
}

// New returns an ingester.
func New(store Store, rejects Rejects, queues Queues, clock func() time.Time, logger *slog.Logger) *Ingester {
	return &Ingester{store: store, rejects: rejects, queues: queues, clock: clock, logger: logger}
}

// message is a message of the batch and its results.
type message struct {
	*events.SQSMessage
	source   string     // its id when it was first sent, "" when that is not known
	arrived  value.Time // 0 when that is not known
	records  int        // that it brings, 1 when it cannot be divided
	changes  []commerce.Change
	refusals []commerce.Refusal
	receipt  *receipt.Stored // of records that were posted to the API; nil of others
	err      error           // why it must come again
}

// Handle applies a batch of messages and reports those that it could not
// finish, so that the queue delivers them again.
func (g *Ingester) Handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	messages := make([]*message, len(batch.Records))
	var moving, staying []*message
	for i := range batch.Records {
		m := &message{SQSMessage: &batch.Records[i]}
		messages[i] = m
		if len(m.Body) > maxDirectBytes && !g.queues.Moved(m.SQSMessage) {
			moving = append(moving, m)
			continue
		}
		g.parse(m)
		staying = append(staying, m)
	}
	working, cancel := deadline.Before(ctx, min(shutdownMargin, deadline.Left(ctx)/4))
	defer cancel()
	var moves sync.WaitGroup
	if len(moving) > 0 {
		moves.Go(func() { g.move(working, moving) })
	}
	g.findReceipts(working, staying)
	g.apply(working, staying)
	g.completeReceipts(working, staying)
	g.reject(working, staying)
	moves.Wait()
	return g.report(ctx, messages), nil
}

// shutdownMargin is the rest of the function's time when work on a batch stops,
// at most a quarter of it: without an answer all of its messages come again,
// and none of them soon.
const shutdownMargin = 5 * time.Second

// report says which messages stay, and lets them come again soon.
func (g *Ingester) report(ctx context.Context, messages []*message) events.SQSEventResponse {
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	var failed []*events.SQSMessage
	for _, m := range messages {
		if m.err != nil {
			g.logger.ErrorContext(ctx, "message failed", "messageId", m.MessageId, "error", m.err)
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			failed = append(failed, m.SQSMessage)
		}
	}
	if len(failed) == 0 {
		return response
	}
	if err := g.queues.Postpone(ctx, failed...); err != nil {
		g.logger.WarnContext(ctx, "messages keep the queue's own timeout", "messages", len(failed), "error", err)
	}
	return response
}

func (g *Ingester) parse(m *message) {
	m.changes, m.refusals = commerce.ParseMessage([]byte(m.Body))
	m.records = len(m.changes) + len(m.refusals)
	m.source, m.arrived = g.queues.Origin(m.SQSMessage)
	for i := range m.changes {
		m.changes[i].Arrived = m.arrived
	}
}

// move sends large messages to the imports.
func (g *Ingester) move(ctx context.Context, moving []*message) {
	all := make([]*events.SQSMessage, len(moving))
	for i, m := range moving {
		all[i] = m.SQSMessage
	}
	if err := g.queues.Move(ctx, all...); err != nil {
		for _, m := range moving {
			m.err = fmt.Errorf("move a large message to the imports: %w", err)
		}
	}
}

// reject hands over the refusals of messages that are done otherwise: a
// message that comes again is refused again.
func (g *Ingester) reject(ctx context.Context, messages []*message) {
	parallel.Each(maxParallelRejects, slices.All(messages), func(_ int, m *message) {
		if m.err != nil || len(m.refusals) == 0 {
			return
		}
		for _, r := range m.refusals {
			g.logger.WarnContext(ctx, "record refused", "messageId", m.MessageId, "reason", r.Reason, "field", r.Field, "message", r.Message)
		}
		if err := g.rejects.Reject(ctx, m.source, m.refusals); err != nil {
			m.err = fmt.Errorf("hand over %d refused records: %w", len(m.refusals), err)
		}
	})
}
