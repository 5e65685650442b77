package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/webhook"
)

// expectation is a delivery that must exist: an event for an endpoint that subscribes to it.
type expectation struct {
	endpoint  value.ID
	eventType string
	retries   int // of the endpoint
	calm      bool
}

// evidence is the knowledge after a run.
type evidence struct {
	// What was sent, and what must exist because of it.
	lost     []put                    // records that the table does not hold
	records  map[value.ID]value.Time  // that it holds, with their times
	expected map[value.ID]expectation // by the delivery's id

	// What the service has stored.
	deliveries map[value.ID]*webhook.Delivery
	counters   map[value.ID]webhook.Counters // by endpoint

	// What its clients have.
	requests   []request
	fed        map[value.ID]value.Time // the records of copies by the feed
	disordered []value.ID              // records of which the feed showed an earlier state after a later one

	queues  []workload.Queue
	differs string // the output of commerce verify when it found a difference, else ""
}

func newEvidence() *evidence {
	return &evidence{
		records: map[value.ID]value.Time{}, expected: map[value.ID]expectation{}, deliveries: map[value.ID]*webhook.Delivery{},
		counters: map[value.ID]webhook.Counters{}, fed: map[value.ID]value.Time{},
	}
}

// look reads what the service has stored.
func (r *run) look(ctx context.Context) (*evidence, error) {
	e, table := newEvidence(), dynamo.New(r.service.Table, r.service.Info.TableName, time.Now)
	for _, t := range r.tenants {
		if err := e.expect(ctx, table, t, r.load.puts); err != nil {
			return nil, err
		}
		err := ops.EachDelivery(ctx, table, t.ID, func(d *webhook.Delivery) error {
			e.deliveries[d.ID] = d
			return nil
		})
		if err != nil {
			return nil, err
		}
		var ids []value.ID
		for _, p := range t.endpoints {
			ids = append(ids, p.id)
		}
		counters, err := table.Counters(ctx, t.ID, ids...)
		if err != nil {
			return nil, fmt.Errorf("read the counters of an organization: %w", err)
		}
		maps.Copy(e.counters, counters)
	}
	var err error
	e.queues, err = r.service.ReadQueues(ctx)
	return e, err
}

// expect adds the deliveries of an organization's records. An event's id follows from the revision of its record.
func (e *evidence) expect(ctx context.Context, table *dynamo.Table, t *tenant, puts []put) error {
	ids := map[commerce.Kind][]value.ID{}
	for _, p := range puts {
		if p.of == t {
			ids[p.kind] = append(ids[p.kind], p.id)
		}
	}
	stored := map[value.ID]*commerce.Stored{}
	for kind, of := range ids {
		found, err := table.Records(ctx, t.ID, kind, of)
		if err != nil {
			return fmt.Errorf("read the records of an organization: %w", err)
		}
		maps.Copy(stored, found)
	}
	for _, p := range puts {
		switch s := stored[p.id]; {
		case p.of != t:
		case s == nil:
			e.lost = append(e.lost, p)
		default:
			e.records[p.id] = s.Revision
			e.expectEvents(t, p, s.Revision)
		}
	}
	return nil
}

func (e *evidence) expectEvents(t *tenant, p put, revision value.Time) {
	for _, eventType := range p.events {
		event := commerce.EventID(p.kind, t.ID, p.id, revision, eventType)
		for _, to := range t.endpoints {
			if commerce.Matches(to.subscribed, eventType) {
				e.expected[webhook.DeliveryID(event, to.id)] = expectation{to.id, eventType, to.retries, p.calm}
			}
		}
	}
}

// pending counts the deliveries that have an attempt ahead, and apart from them the probes of open circuits, which are
// repeated as long as their endpoints are dead.
func (e *evidence) pending() (pending, probes int) {
	for _, d := range e.deliveries {
		switch {
		case d.Pending() && d.Probe:
			probes++
		case d.Pending():
			pending++
		}
	}
	return pending, probes
}

// messages counts those that a function will take, without those of probes, and those that none will.
func (e *evidence) messages() (waiting, dead int) {
	for _, q := range e.queues {
		if q.Dead {
			dead += q.Messages
		} else {
			waiting += q.Messages
		}
	}
	_, probes := e.pending()
	return waiting - probes, dead
}

const (
	lookEvery = 3 * time.Second
	calmLooks = 2  // in a row without an attempt ahead, after which a complete run has ended
	maxLooks  = 10 // likewise, after which missing data counts as lost
	// manyMessages is how many messages show by themselves that a run goes on. A look reads every delivery.
	manyMessages = 2000
)

// settle waits until every delivery has ended, redrives the dead letters once, and returns what there is then. A
// delivery's further messages wait for minutes, in case its own is lost: once no attempt lies ahead, a restart of the
// service makes all of them visible at once.
func (r *run) settle(ctx context.Context) (*evidence, error) {
	deadline, told := time.Now().Add(r.Calm), time.Time{}
	var restarted, redriven bool
	for calm := 0; ; {
		if err := pause.For(ctx, lookEvery); err != nil {
			return nil, err
		}
		e := newEvidence()
		var err error
		if e.queues, err = r.service.ReadQueues(ctx); err != nil {
			return nil, err
		}
		if waiting, _ := e.messages(); waiting > manyMessages && time.Now().Before(deadline) {
			continue
		}
		if e, err = r.look(ctx); err != nil {
			return nil, err
		}
		pending, _ := e.pending()
		waiting, dead := e.messages()
		if told.Before(time.Now().Add(-15 * time.Second)) {
			told = time.Now()
			r.say("%d of %d deliveries, %d pending, %d messages", len(e.deliveries), len(e.expected), pending, waiting)
		}
		if calm++; pending > 0 {
			calm = 0
		}
		switch complete := len(e.lost) == 0 && len(e.deliveries) >= len(e.expected); {
		case time.Now().After(deadline), calm >= maxLooks:
			return e, nil
		case calm < calmLooks:
		case waiting > 0 && !restarted:
			calm, restarted = 0, true
			err = errors.Join(r.process.Stop(), r.start(ctx))
		case waiting <= 0 && dead > 0 && !redriven:
			calm, redriven = 0, true
			err = r.redrive(ctx)
		case waiting <= 0 && complete:
			return e, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// redrive moves dead letters and parked records back, as an operator does.
func (r *run) redrive(ctx context.Context) error {
	for _, command := range []string{"redrive deliveries", "redrive records", "redrive index-jobs", "replay"} {
		said, err := r.process.Command(ctx, strings.Fields(command)...)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.say("commerce %s: %s %v", command, said, err)
	}
	return nil
}

// read completes the evidence with what the service's clients and commands see.
func (r *run) read(ctx context.Context, e *evidence) error {
	e.requests = r.receivers.seen()
	if err := r.readFeeds(ctx, e); err != nil {
		return err
	}
	if said, err := r.process.Command(ctx, "verify"); err != nil {
		e.differs = said
	}
	return nil
}
