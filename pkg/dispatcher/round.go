package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// roundRows is about how many rows are written and sent together; a change
	// that has more is a round of its own. It bounds what a batch holds in
	// memory, however many endpoints its events reach.
	roundRows = 1000
	// reserve is the time that must be left for another round.
	reserve = 10 * time.Second
)

// errLate leaves the rest of a batch to its next try, which finds what this
// one has done.
var errLate = fault.Busy(errors.New("too little time is left for the rest of the batch"))

// dispatch writes and sends the events of all changes, in rounds.
func (d *Dispatcher) dispatch(ctx context.Context, changes []*change) {
	var round []*change
	rows, done := 0, false
	flush := func() {
		if len(round) > 0 {
			d.round(ctx, round)
			round, rows, done = nil, 0, true
		}
	}
	for _, c := range changes {
		n := c.rows()
		if c.err != nil || n == 0 {
			continue
		}
		if rows+n > roundRows {
			flush()
		}
		if done && d.late(ctx) {
			c.fail(errLate)
			return
		}
		round, rows = append(round, c), rows+n
	}
	flush()
}

func (d *Dispatcher) late(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return limited && deadline.Sub(d.clock()) < reserve
}

// rows counts the rows of a change.
func (c *change) rows() int {
	n := 0
	for i := range c.events {
		n += len(c.events[i].subscribed)
	}
	return n
}

// round dispatches changes together. When one of them cannot be processed,
// each is tried alone, so that only that one is parked.
func (d *Dispatcher) round(ctx context.Context, changes []*change) {
	b := &batch{}
	for _, c := range changes {
		if err := b.add(c, value.TimeOf(d.clock())); err != nil {
			c.fail(err)
			d.each(ctx, changes)
			return
		}
	}
	err := d.bring(ctx, b)
	if err != nil && !fault.Is(err, fault.Unavailable) && ctx.Err() == nil && len(changes) > 1 {
		d.each(ctx, changes)
		return
	}
	for _, c := range changes {
		c.fail(err)
	}
}

func (d *Dispatcher) each(ctx context.Context, changes []*change) {
	for _, c := range changes {
		if c.err == nil {
			d.round(ctx, []*change{c})
		}
	}
}

// batch is what a round writes: a payload an event, and a row for each of its
// endpoints, with the lane that the endpoint takes.
type batch struct {
	payloads []webhook.Payload
	rows     []*webhook.Delivery
	lanes    []webhook.Lane
}

// add makes the payloads and rows of a change.
func (b *batch) add(c *change, now value.Time) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	for i := range c.events {
		ev := &c.events[i]
		if len(ev.subscribed) == 0 {
			continue
		}
		body, err := ev.Encode()
		if err != nil {
			return err
		}
		b.payloads = append(b.payloads, webhook.Payload{OrganizationID: ev.OrganizationID, EventID: ev.ID, Body: body})
		for _, e := range ev.subscribed {
			b.rows = append(b.rows, webhook.NewDelivery(&ev.WebhookPayload, e, e.Hold(ev.directory.Applications[e.ApplicationID]), now))
			b.lanes = append(b.lanes, e.Lane)
		}
	}
	return nil
}

// bring writes payloads and rows and then sends the rows' messages, so that a
// message finds both. A row that an earlier try has written is sent again as
// long as no attempt shows that its message arrived.
func (d *Dispatcher) bring(ctx context.Context, b *batch) error {
	var existing []*webhook.Delivery
	writing, inner := errgroup.WithContext(ctx)
	writing.Go(func() error { return d.store.PutPayloads(inner, b.payloads) })
	writing.Go(func() (err error) {
		existing, err = d.store.CreateDeliveries(inner, b.rows)
		return err
	})
	if err := writing.Wait(); err != nil {
		return err
	}
	now := value.TimeOf(d.clock())
	waiting := map[webhook.Lane][]*webhook.Delivery{}
	var held []*webhook.Delivery
	for i, row := range b.rows {
		if existing[i] != nil {
			row = existing[i]
		}
		switch {
		case row.Unattempted():
			waiting[b.lanes[i]] = append(waiting[b.lanes[i]], row)
		case row.MayMissRecovery(now):
			held = append(held, row)
		}
	}
	if err := d.reconsider(ctx, held, waiting, now); err != nil {
		return err
	}
	sending, inner := errgroup.WithContext(ctx)
	for lane, rows := range waiting {
		sending.Go(func() error { return d.queue.Send(inner, lane, now, rows...) })
	}
	return sending.Wait()
}

// reconsider looks again at the endpoints of rows that are HELD,
// [webhook.Delivery.MayMissRecovery], and adds those that nothing holds any more to the
// rows that wait for their message.
func (d *Dispatcher) reconsider(ctx context.Context, held []*webhook.Delivery, waiting map[webhook.Lane][]*webhook.Delivery, now value.Time) error {
	directories := map[value.ID]*webhook.Directory{}
	for _, row := range held {
		directory := directories[row.OrganizationID]
		if directory == nil {
			read, err := d.store.Directory(ctx, row.OrganizationID)
			if err != nil {
				return err
			}
			directory, directories[row.OrganizationID] = read, read
		}
		i := slices.IndexFunc(directory.Endpoints, func(e *webhook.Endpoint) bool { return e.ID == row.EndpointID })
		if i < 0 {
			continue
		}
		next := row.RecheckHold(directory.Endpoints[i], directory.Applications[row.ApplicationID], now)
		if next == nil {
			continue
		}
		switch _, err := d.store.PutDelivery(ctx, row, next); {
		case errors.Is(err, fault.ErrChanged): // whoever was faster has sent it
		case err != nil:
			return err
		default:
			lane := directory.Endpoints[i].Lane
			waiting[lane] = append(waiting[lane], next)
		}
	}
	return nil
}
