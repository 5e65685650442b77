// Package ingest applies what back offices send: it turns messages of the
// records queue into conditional writes of records, the only write there is,
// from which events and lists follow. A message is done when every record in
// it is stored or refused; doing it again changes nothing, and a refused
// record never holds up its neighbours. What a record must look like and
// which change wins is left to package commerce.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
)

const (
	// writers bounds the writes under way for one message.
	writers = 16
	// messages bounds the messages of a batch that are worked on at a time.
	messages = 4
	// conflicts is how often a write that met another writer is tried anew
	// before the message goes back to the queue.
	conflicts = 10
)

// Store keeps records. PutRecord fails with [dynamo.ErrChanged] when the
// record is no longer what the write was based on.
type Store interface {
	Records(ctx context.Context, org value.ID, kind commerce.Kind, ids []value.ID) (map[value.ID]*commerce.Stored, error)
	PutRecord(ctx context.Context, previous, next *commerce.Stored) error
}

// Rejects takes refused records.
type Rejects interface {
	Reject(ctx context.Context, sourceMessageID string, refusals []commerce.Refusal) error
}

// Ingester applies messages. It is safe for concurrent use.
type Ingester struct {
	store   Store
	rejects Rejects
	clock   func() time.Time
	logger  *slog.Logger
}

// New returns an ingester.
func New(store Store, rejects Rejects, clock func() time.Time, logger *slog.Logger) *Ingester {
	return &Ingester{store: store, rejects: rejects, clock: clock, logger: logger}
}

// Handle applies a batch of messages. What could not be finished is reported
// as failed, so that the queue delivers it again.
func (g *Ingester) Handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	failed := make([]error, len(batch.Records))
	var group errgroup.Group
	group.SetLimit(messages)
	for i := range batch.Records {
		group.Go(func() error {
			failed[i] = g.message(ctx, &batch.Records[i])
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return events.SQSEventResponse{}, err
	}
	var response events.SQSEventResponse
	for i, err := range failed {
		if err != nil {
			g.logger.ErrorContext(ctx, "message failed", "messageId", batch.Records[i].MessageId, "error", err)
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: batch.Records[i].MessageId})
		}
	}
	return response, nil
}

// message applies one message. Refusals are sent last: when something else
// fails, the message comes again and would refuse them again.
func (g *Ingester) message(ctx context.Context, m *events.SQSMessage) error {
	changes, refusals := commerce.ParseMessage([]byte(m.Body))
	refused, err := g.apply(ctx, changes)
	if err != nil {
		return err
	}
	if refusals = append(refusals, refused...); len(refusals) == 0 {
		return nil
	}
	for _, r := range refusals {
		g.logger.WarnContext(ctx, "record refused", "messageId", m.MessageId, "reason", r.Reason, "field", r.Field, "message", r.Message)
	}
	if err := g.rejects.Reject(ctx, m.MessageId, refusals); err != nil {
		return fmt.Errorf("hand over %d refused records: %w", len(refusals), err)
	}
	return nil
}

// subject is one record with its changes in the order of the message.
type subject struct {
	kind    commerce.Kind
	id      value.ID
	changes []commerce.Change
	refused []commerce.Refusal
}

type subjectKey struct {
	kind commerce.Kind
	id   value.ID
}

// apply makes the changes, those of one record in their order, those of
// different records side by side.
func (g *Ingester) apply(ctx context.Context, changes []commerce.Change) ([]commerce.Refusal, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	org := changes[0].OrganizationID
	subjects, refusals := divide(changes)
	stored, err := g.read(ctx, org, subjects)
	if err != nil {
		return nil, err
	}
	var group errgroup.Group
	group.SetLimit(writers)
	for _, s := range subjects {
		group.Go(func() error { return g.applyAll(ctx, org, s, stored[subjectKey{s.kind, s.id}]) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, s := range subjects {
		refusals = append(refusals, s.refused...)
	}
	return refusals, nil
}

// divide groups changes by the record that they are about.
func divide(changes []commerce.Change) (subjects []*subject, refusals []commerce.Refusal) {
	byKey := map[subjectKey]*subject{}
	for _, c := range changes {
		id, err := commerce.Identify(c)
		if err != nil {
			refusals = append(refusals, commerce.Refuse(c, err))
			continue
		}
		s := byKey[subjectKey{c.Kind, id}]
		if s == nil {
			s = &subject{kind: c.Kind, id: id}
			byKey[subjectKey{c.Kind, id}] = s
			subjects = append(subjects, s)
		}
		s.changes = append(s.changes, c)
	}
	return subjects, refusals
}

func (g *Ingester) read(ctx context.Context, org value.ID, subjects []*subject) (map[subjectKey]*commerce.Stored, error) {
	ids := map[commerce.Kind][]value.ID{}
	for _, s := range subjects {
		ids[s.kind] = append(ids[s.kind], s.id)
	}
	stored := make(map[subjectKey]*commerce.Stored, len(subjects))
	for kind, of := range ids {
		found, err := g.store.Records(ctx, org, kind, of)
		if err != nil {
			return nil, fmt.Errorf("read %d records of kind %s: %w", len(of), kind, err)
		}
		for id, s := range found {
			stored[subjectKey{kind, id}] = s
		}
	}
	return stored, nil
}

// applyAll makes one record's changes one after the other.
func (g *Ingester) applyAll(ctx context.Context, org value.ID, s *subject, stored *commerce.Stored) error {
	for _, c := range s.changes {
		next, err := g.applyOne(ctx, org, s, c, stored)
		var refusal *fault.Error
		switch {
		case errors.As(err, &refusal) && refusal.Kind != fault.Unavailable:
			s.refused = append(s.refused, commerce.Refuse(c, err))
		case err != nil:
			return fmt.Errorf("apply a change to %s %s: %w", s.kind, s.id, err)
		default:
			stored = next
		}
	}
	return nil
}

// applyOne makes one change and returns what is stored then. When another
// writer was faster, the change is made anew on what that one wrote.
func (g *Ingester) applyOne(ctx context.Context, org value.ID, s *subject, c commerce.Change, stored *commerce.Stored) (*commerce.Stored, error) {
	for range conflicts {
		next, err := commerce.Apply(stored, c, value.TimeOf(g.clock()))
		if err != nil || next == nil {
			return stored, err
		}
		err = g.store.PutRecord(ctx, stored, next)
		if err == nil {
			return next, nil
		}
		if !errors.Is(err, dynamo.ErrChanged) {
			return nil, err
		}
		found, err := g.store.Records(ctx, org, s.kind, []value.ID{s.id})
		if err != nil {
			return nil, err
		}
		stored = found[s.id]
	}
	return nil, fault.Busy(fmt.Errorf("%d other writers were faster", conflicts))
}
