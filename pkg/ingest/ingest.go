// Package ingest applies what back offices send: it turns messages of the
// records queue into conditional writes of records, the only write there is,
// from which events and lists follow. A message is done when every record in
// it is stored or refused; one that the table refuses to take comes again, in
// seconds at first, and doing it again changes nothing. A refused record never
// holds up its neighbours. The messages of a batch share the table's calls,
// and nothing else: each is done or comes again on its own. Messages of many
// records go to a queue of their own, so that an import does not keep single
// records waiting. What a record must look like and which change wins is left
// to package commerce.
package ingest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/deadline"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/value"
)

const (
	// writers bounds the single writes under way for a batch.
	writers = 16
	// senders bounds the messages whose refusals are sent at a time.
	senders = 4
	// large is the bytes past which a message is one of many records: as many
	// take seconds where a table is busy.
	large = 32 << 10
	// conflicts is how often a write that met another writer is tried anew
	// before the message goes back to the queue.
	conflicts = 10
)

// Store keeps records. A write fails with [fault.ErrChanged] when the record
// is no longer what it was based on: of CreateRecords, that there is none. What
// is read and created together fails on its own.
type Store interface {
	ReadRecords(ctx context.Context, refs []dynamo.RecordRef) []dynamo.Found
	CreateRecords(ctx context.Context, records []*commerce.Stored) []error
	PutRecord(ctx context.Context, previous, next *commerce.Stored) error
}

// Rejects takes refused records.
type Rejects interface {
	Reject(ctx context.Context, sourceMessageID string, refusals []commerce.Refusal) error
}

// Imports is the queue of large messages. Moved tells a message that came by
// it, and Arrived when a message was sent at first, 0 when that is not known.
type Imports interface {
	Move(ctx context.Context, messages ...*events.SQSMessage) error
	Moved(m *events.SQSMessage) bool
	Arrived(m *events.SQSMessage) value.Time
}

// Queues are where messages come from. Postpone hides some from their readers,
// longer each time they were received.
type Queues interface {
	Imports
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

// message is one of a batch and what became of it.
type message struct {
	*events.SQSMessage
	changes  []commerce.Change
	refusals []commerce.Refusal
	err      error // why it must come again
}

// Handle applies a batch of messages. What could not be finished is reported
// as failed, so that the queue delivers it again.
func (g *Ingester) Handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	messages := make([]*message, len(batch.Records))
	var moving, staying []*message
	for i := range batch.Records {
		m := &message{SQSMessage: &batch.Records[i]}
		messages[i] = m
		if len(m.Body) > large && !g.queues.Moved(m.SQSMessage) {
			moving = append(moving, m)
			continue
		}
		g.parse(m)
		staying = append(staying, m)
	}
	working, cancel := deadline.Before(ctx, min(endTime, deadline.Left(ctx)/4))
	defer cancel()
	var moves sync.WaitGroup
	moves.Go(func() { g.move(working, moving) })
	g.apply(working, staying)
	g.reject(working, staying)
	moves.Wait()
	return g.report(ctx, messages), nil
}

// endTime is what is left of the function's time when work on a batch stops,
// at most a quarter of it: without an answer all of its messages come again,
// and none of them soon.
const endTime = 5 * time.Second

// report tells which messages stay, and lets them come again soon.
func (g *Ingester) report(ctx context.Context, messages []*message) (response events.SQSEventResponse) {
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
	arrived := g.queues.Arrived(m.SQSMessage)
	for i := range m.changes {
		m.changes[i].Arrived = arrived
	}
}

// move sends large messages to the imports.
func (g *Ingester) move(ctx context.Context, moving []*message) {
	if len(moving) == 0 {
		return
	}
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

// reject hands over what was refused of messages that are through otherwise:
// one that comes again would refuse it again.
func (g *Ingester) reject(ctx context.Context, messages []*message) {
	each(messages, senders, func(m *message) {
		if m.err != nil || len(m.refusals) == 0 {
			return
		}
		for _, r := range m.refusals {
			g.logger.WarnContext(ctx, "record refused", "messageId", m.MessageId, "reason", r.Reason, "field", r.Field, "message", r.Message)
		}
		if err := g.rejects.Reject(ctx, m.MessageId, m.refusals); err != nil {
			m.err = fmt.Errorf("hand over %d refused records: %w", len(m.refusals), err)
		}
	})
}
