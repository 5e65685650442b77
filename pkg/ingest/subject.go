package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/retry"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
)

// subject is one record with the changes that the messages of a batch make to it.
type subject struct {
	ref     dynamo.RecordRef
	changes []change // not made yet, in the order of the batch
	stored  *commerce.Stored
	refused []refusal
	err     error // why the changes that are left were not made
}

// change is a change and the message that it came in.
type change struct {
	commerce.Change
	message *message
}

type refusal struct {
	commerce.Refusal
	message *message
}

// apply makes the changes of the messages: those of one record in order, those
// of different records in parallel.
func (g *Ingester) apply(ctx context.Context, messages []*message) {
	subjects := divide(messages)
	g.read(ctx, slices.DeleteFunc(slices.Clone(subjects), g.looksNew))
	var known, unknown []*subject
	for _, s := range subjects {
		if s.stored == nil && !s.adjusts() {
			unknown = append(unknown, s)
		} else {
			known = append(known, s)
		}
	}
	var steps []func()
	if len(known) > 0 {
		steps = append(steps, func() { g.finish(ctx, known) })
	}
	if len(unknown) > 0 {
		steps = append(steps, func() { g.create(ctx, unknown) })
	}
	parallel.Each(len(steps), slices.All(steps), func(_ int, step func()) { step() })
	g.finish(ctx, unknown)
	for _, s := range subjects {
		s.report()
	}
}

// divide groups the changes of messages by the record that they are about.
func divide(messages []*message) []*subject {
	var subjects []*subject
	byRef := map[dynamo.RecordRef]*subject{}
	for _, m := range messages {
		for _, c := range m.changes {
			id, err := commerce.Identify(c)
			if err != nil {
				m.refusals = append(m.refusals, commerce.Refuse(c, err))
				continue
			}
			ref := dynamo.RecordRef{OrganizationID: c.OrganizationID, Kind: c.Kind, ID: id}
			s := byRef[ref]
			if s == nil {
				s = &subject{ref: ref}
				byRef[ref] = s
				subjects = append(subjects, s)
			}
			s.changes = append(s.changes, change{c, m})
		}
	}
	return subjects
}

const (
	// newAge is the age up to which an id shows that its record is new: the
	// record is put without a read before, and the table refuses it if it is not.
	newAge = 10 * time.Minute
	// maxClockSkew is how far senders' clocks are ahead of ours at most.
	maxClockSkew = time.Minute
)

// looksNew reports whether a record is put, under an id that was made a short
// time ago. The first records of an organization are read all the same, as that
// finds its keys of signed senders.
func (g *Ingester) looksNew(s *subject) bool {
	at, now := s.ref.ID.Time(), g.now()
	return s.ref.ID.IsTimed() && at >= now.Add(-newAge) && at <= now.Add(maxClockSkew) &&
		s.changes[0].Op == commerce.OpPut && g.store.SendsUnsigned(s.ref.OrganizationID)
}

// read reads the stored records of the subjects.
func (g *Ingester) read(ctx context.Context, subjects []*subject) {
	if len(subjects) == 0 {
		return
	}
	refs := make([]dynamo.RecordRef, len(subjects))
	for i, s := range subjects {
		refs[i] = s.ref
	}
	for i, found := range g.store.ReadRecords(ctx, refs) {
		subjects[i].stored, subjects[i].err = found.Stored, found.Err
		if found.SenderKeys {
			subjects[i].refuseQueued()
		}
	}
}

// errSenderKeys refuses what a queue message brings for an organization with
// keys of signed senders.
var errSenderKeys = fault.New(fault.Conflict, "sender_keys",
	"the organization has keys of signed senders, which are not checked any more: post its records to POST /ingest/records, or "+
		"have the operator delete the keys with the command under \"Signed senders\" in OPERATING.md")

// refuseQueued refuses the changes that were not posted to the API.
func (s *subject) refuseQueued() {
	s.changes = slices.DeleteFunc(s.changes, func(c change) bool {
		queued := c.message.receipt == nil
		if queued {
			s.refused = append(s.refused, refusal{commerce.Refuse(c.Change, errSenderKeys), c.message})
		}
		return queued
	})
}

// create makes the first change to records that are not stored, or look new. If
// one is stored all the same, finish makes the change to that.
func (g *Ingester) create(ctx context.Context, subjects []*subject) {
	var creating, conflicting []*subject
	var records []*commerce.Stored
	for _, s := range subjects {
		if next := s.next(g.now()); next != nil {
			creating, records = append(creating, s), append(records, next)
		}
	}
	if len(records) == 0 {
		return
	}
	for i, err := range g.store.CreateRecords(ctx, records) {
		switch s := creating[i]; {
		case err == nil:
			s.made(records[i])
		case s.learn(err):
		case errors.Is(err, fault.ErrChanged):
			conflicting = append(conflicting, s)
		default:
			s.err = err
		}
	}
	g.read(ctx, conflicting)
}

// finish makes the remaining changes.
func (g *Ingester) finish(ctx context.Context, subjects []*subject) {
	parallel.Each(maxParallelWrites, slices.All(subjects), func(_ int, s *subject) {
		for len(s.changes) > 0 && s.err == nil {
			step := g.makeNext
			if s.adjusts() {
				step = g.adjust
			}
			s.err = retry.Contended(ctx, maxWriteConflicts, func() (done bool, err error) { return step(ctx, s) })
		}
	})
}

// makeNext makes the next change. When another writer was faster it is not done,
// and knows what that one wrote.
func (g *Ingester) makeNext(ctx context.Context, s *subject) (done bool, err error) {
	next := s.next(g.now())
	if next == nil {
		return true, s.err
	}
	if err = g.setThreshold(ctx, s.stored, next); err != nil {
		return false, err
	}
	err = g.store.PutRecord(ctx, s.stored, next)
	switch {
	case err == nil:
		s.made(next)
		return true, nil
	case s.learn(err):
		return false, nil
	case errors.Is(err, fault.ErrChanged):
		g.read(ctx, []*subject{s})
		return false, s.err
	}
	return false, err
}

// learn takes what is stored from the error of a write that met it. Of stock it lacks
// what the ledger holds.
func (s *subject) learn(err error) bool {
	var changed *dynamo.Changed
	found := errors.As(err, &changed) && s.ref.Kind != commerce.KindStock
	if found {
		s.stored = changed.Current
	}
	return found
}

func (g *Ingester) now() value.Time { return value.TimeOf(g.clock()) }

// next applies the next change to the stored record and returns what to store,
// nil when no change is left or one fails. It passes over changes that are
// refused or change nothing, and ends before an adjustment.
func (s *subject) next(now value.Time) *commerce.Stored {
	for len(s.changes) > 0 && s.err == nil && !s.adjusts() {
		c := s.changes[0]
		next, err := commerce.Apply(s.stored, c.Change, now)
		var refused *fault.Error
		switch {
		case errors.As(err, &refused) && refused.Kind != fault.Unavailable:
			s.refused = append(s.refused, refusal{commerce.Refuse(c.Change, err), c.message})
		case err != nil:
			s.err = err
			return nil
		case next != nil:
			return next
		}
		s.changes = s.changes[1:]
	}
	return nil
}

// adjusts reports whether the next change is an adjustment.
func (s *subject) adjusts() bool { return len(s.changes) > 0 && s.changes[0].Op == commerce.OpAdjust }

// made notes that the record that next returned is stored.
func (s *subject) made(stored *commerce.Stored) { s.stored, s.changes = stored, s.changes[1:] }

// report passes the results on to the messages. Those with a change that was
// not made fail.
func (s *subject) report() {
	for _, r := range s.refused {
		r.message.refusals = append(r.message.refusals, r.Refusal)
	}
	for _, c := range s.changes {
		if c.message.err == nil {
			c.message.err = fmt.Errorf("apply a change to %s %s: %w", s.ref.Kind, s.ref.ID, s.err)
		}
	}
}
