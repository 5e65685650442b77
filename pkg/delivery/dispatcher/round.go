package dispatcher

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/base/deadline"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// maxRound is about how many deliveries are written and sent together; a
	// change that has more is a round of its own. It bounds the memory of a
	// batch, however many endpoints its events reach.
	maxRound = 1000
	// fewDeliveries of an organization in a batch fit one request to the table, also
	// with their payloads, and about one to the queue.
	fewDeliveries = 12
	// roundTime is the time that must be left for another round.
	roundTime = 10 * time.Second
)

// errLate leaves the rest of a batch to its next try, which finds the
// deliveries that this one has written.
var errLate = fault.Busy(errors.New("too little time is left for the rest of the batch"))

// dispatch writes and sends the deliveries of all changes, in rounds. The
// organizations with few of them do not wait for one with many, as an import has.
// The messages of few carry what their attempts need, as it was when the batch
// began; those of many would wait too long for that.
func (d *Dispatcher) dispatch(ctx context.Context, changes []*change, begun value.Time) {
	of := map[value.ID]int{} // deliveries by organization
	for _, c := range changes {
		if n := c.deliveries(); n > 0 {
			of[c.events[0].OrganizationID] += n
		}
	}
	var few, many []*change
	for _, c := range changes {
		switch {
		case c.err != nil || c.deliveries() == 0:
		case of[c.events[0].OrganizationID] <= fewDeliveries:
			c.carries = begun
			few = append(few, c)
		default:
			many = append(many, c)
		}
	}
	for i, round := range slices.Concat(rounds(few), rounds(many)) {
		if i == 0 || deadline.Left(ctx) >= roundTime {
			d.round(ctx, round)
			continue
		}
		for _, c := range round {
			c.fail(errLate)
		}
	}
}

// rounds divides changes into those that are dispatched together.
func rounds(changes []*change) (all [][]*change) {
	start, size := 0, 0
	for i, c := range changes {
		if size += c.deliveries(); size > maxRound && i > start {
			all = append(all, changes[start:i])
			start, size = i, c.deliveries()
		}
	}
	if start < len(changes) {
		all = append(all, changes[start:])
	}
	return all
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
	err := d.write(ctx, b)
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

// batch is what a round makes: a payload for each event, and a delivery for each
// of its endpoints.
type batch struct {
	payloads []webhook.Payload
	outgoing []*outgoing
}

// outgoing is a delivery and its message.
type outgoing struct {
	*webhook.Delivery

	lane    webhook.Lane
	carried *webhook.Carried
}

// add makes the payloads and deliveries of a change.
func (b *batch) add(c *change, now value.Time) (err error) {
	defer fault.Recovered(&err)
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
			application := ev.directory.Applications[e.ApplicationID]
			hold, _ := webhook.MaySend(e, application)
			out := &outgoing{Delivery: webhook.NewDelivery(&ev.WebhookPayload, e, hold, now), lane: e.Lane}
			if c.carries != 0 && hold == "" && ev.about == nil { // the body of an alert is not the same in another try
				out.carried = webhook.Carry(out.Delivery, e, application, body, c.carries)
			}
			b.outgoing = append(b.outgoing, out)
		}
	}
	return nil
}

// write writes payloads and deliveries and then sends the messages, so that the
// worker finds both. The worker writes a delivery that its message carries, with the
// outcome of the attempt; where the payload was there already, an earlier try may
// have sent that message, and the delivery is written too. A delivery that was there
// is sent again while no attempt shows that its message arrived.
func (d *Dispatcher) write(ctx context.Context, b *batch) error {
	var written, repeated []*outgoing
	for _, out := range b.outgoing {
		if out.carried == nil {
			written = append(written, out)
		}
	}
	known, err := d.create(ctx, written, b.payloads...)
	if err != nil {
		return err
	}
	for _, out := range b.outgoing {
		if out.carried != nil && known[out.EventID] {
			out.carried, repeated = nil, append(repeated, out)
		}
	}
	if len(repeated) > 0 {
		if _, err := d.create(ctx, repeated); err != nil {
			return err
		}
	}
	now := value.TimeOf(d.clock())
	waiting := map[webhook.Lane][]queue.Move{}
	var held []*webhook.Delivery
	for _, out := range b.outgoing {
		switch {
		case out.Unattempted():
			move := queue.MoveOf(out.Delivery, now)
			move.Carried = out.carried
			waiting[out.lane] = append(waiting[out.lane], move)
		case out.MayMissRecovery(now):
			held = append(held, out.Delivery)
		}
	}
	if err := d.recheckHolds(ctx, held, waiting, now); err != nil {
		return err
	}
	return parallel.UntilError(ctx, len(waiting), maps.All(waiting), func(ctx context.Context, lane webhook.Lane, moves []queue.Move) error {
		return d.queue.Move(ctx, lane, moves...)
	})
}

// create writes payloads and deliveries. A delivery that the table has already
// replaces the one given; known are the events whose payload it has already.
func (d *Dispatcher) create(ctx context.Context, all []*outgoing, payloads ...webhook.Payload) (known map[value.ID]bool, err error) {
	deliveries := make([]*webhook.Delivery, len(all))
	for i, out := range all {
		deliveries[i] = out.Delivery
	}
	existing, known, err := d.store.CreateDeliveries(ctx, deliveries, payloads...)
	for i, there := range existing {
		if there != nil {
			all[i].Delivery = there
		}
	}
	return known, err
}

// recheckHolds reads the endpoints of HELD deliveries again, for the reason
// that [webhook.Delivery.MayMissRecovery] gives, and adds the deliveries that
// nothing holds to those that wait for their message.
func (d *Dispatcher) recheckHolds(ctx context.Context, held []*webhook.Delivery, waiting map[webhook.Lane][]queue.Move, now value.Time) error {
	directories := map[value.ID]*webhook.Directory{}
	for _, delivery := range held {
		org := delivery.OrganizationID
		if directories[org] == nil {
			read, err := d.store.Directory(ctx, org)
			if err != nil {
				return err
			}
			directories[org] = read
		}
		directory := directories[org]
		i := slices.IndexFunc(directory.Endpoints, func(e *webhook.Endpoint) bool { return e.ID == delivery.EndpointID })
		if i < 0 {
			continue
		}
		e := directory.Endpoints[i]
		next := delivery.RecheckHold(e, directory.Applications[delivery.ApplicationID], now)
		if next == nil {
			continue
		}
		switch _, err := d.store.PutDelivery(ctx, delivery, next); {
		case err == nil:
			waiting[e.Lane] = append(waiting[e.Lane], queue.MoveOf(next, now))
		case !errors.Is(err, fault.ErrChanged): // else the other writer has sent it
			return err
		}
	}
	return nil
}
