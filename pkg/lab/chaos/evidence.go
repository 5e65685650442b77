package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/webhook"
)

// expectation is a delivery that must exist: an event for an endpoint that subscribes to it.
type expectation struct {
	endpoint value.ID
	retries  int // of the endpoint
}

// evidence is the knowledge after a run.
type evidence struct {
	// What was sent, and what must exist because of it.
	lost     []string                 // records that the table does not hold
	records  revisions                // that it holds
	expected map[value.ID]expectation // by the delivery's id

	// What the service has stored.
	deliveries map[value.ID]*webhook.Delivery
	counters   map[value.ID]webhook.Counters // by endpoint
	queues     []*ops.QueueStatus
	verified   string   // the output of commerce verify
	differs    []string // its error, if it found a difference

	// What its clients have.
	accepted map[value.ID][]time.Time // when each delivery was answered with success
	copied   revisions                // by the feed

	// What the service's log says, and what was done to it.
	attempts map[value.ID][]attempt // by delivery
	failed   map[string]string      // by invocation and delivery: why the outcome is not stored
	killed   map[string]time.Time   // invocations of the worker
	restarts []time.Time
}

func newEvidence() *evidence {
	return &evidence{
		records: revisions{}, expected: map[value.ID]expectation{}, deliveries: map[value.ID]*webhook.Delivery{},
		counters: map[value.ID]webhook.Counters{}, accepted: map[value.ID][]time.Time{}, copied: revisions{},
		attempts: map[value.ID][]attempt{}, failed: map[string]string{}, killed: map[string]time.Time{},
	}
}

// look reads what the service has stored.
func (r *run) look(ctx context.Context) (e *evidence, err error) {
	e = newEvidence()
	listed, err := r.service.Queues.ListQueues(ctx, &sqs.ListQueuesInput{})
	if err != nil {
		return nil, fmt.Errorf("list the queues: %w", err)
	}
	if e.queues, err = ops.ReadStatus(ctx, r.service.Queues, listed.QueueUrls, true); err != nil {
		return nil, err
	}
	table := dynamo.New(r.service.Table, r.service.Info.TableName, time.Now)
	for _, t := range r.tenants {
		if err := e.expect(ctx, table, t); err != nil {
			return nil, err
		}
		err := ops.EachDelivery(ctx, table, t.ID, func(d *webhook.Delivery) error {
			e.deliveries[d.ID] = d
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, to := range t.endpoints {
			counters, err := table.Counters(ctx, t.ID, to.id)
			if err != nil {
				return nil, fmt.Errorf("read the counters of an endpoint: %w", err)
			}
			maps.Copy(e.counters, counters)
		}
	}
	return e, nil
}

// expect adds the deliveries of an organization's records. An event's id follows from the revision of its record.
func (e *evidence) expect(ctx context.Context, table *dynamo.Table, t *tenant) error {
	ids := map[commerce.Kind][]value.ID{}
	for _, p := range t.puts {
		ids[p.kind] = append(ids[p.kind], p.id)
	}
	stored := map[value.ID]*commerce.Stored{}
	for kind, of := range ids {
		found, err := table.Records(ctx, t.ID, kind, of)
		if err != nil {
			return fmt.Errorf("read the records of an organization: %w", err)
		}
		maps.Copy(stored, found)
	}
	for _, p := range t.puts {
		s := stored[p.id]
		if s == nil {
			e.lost = append(e.lost, fmt.Sprintf("%s %s is not there", p.kind, p.id))
			continue
		}
		e.records[p.id] = s.Revision
		for _, eventType := range p.events {
			event := commerce.EventID(p.kind, t.ID, p.id, s.Revision, eventType)
			for _, to := range t.endpoints {
				if commerce.Matches(to.subscribed, eventType) {
					e.expected[webhook.DeliveryID(event, to.id)] = expectation{to.id, to.retries}
				}
			}
		}
	}
	return nil
}

// left counts the deliveries that have an attempt ahead, the messages that a function will take, and those that none
// will. The probe of an open circuit is repeated as long as its endpoint is dead, so it is neither, nor are its message and
// one more, which waits in case the first is lost, and still does when the probe has failed.
func (e *evidence) left() (pending, waiting, dead int) {
	open := map[value.ID]bool{} // endpoints that are probed
	for _, d := range e.deliveries {
		switch {
		case d.Pending() && d.Probe, d.HeldReason == webhook.HeldCircuitOpen:
			open[d.EndpointID] = true
		case d.Pending():
			pending++
		}
	}
	for _, q := range e.queues {
		if q.Stuck {
			dead += q.All()
		} else {
			waiting += q.All()
		}
	}
	if waiting <= 2*len(open) {
		waiting = 0
	}
	return pending, waiting, dead
}

// settle waits until every delivery has ended, and judges what there is then. A delivery's further messages wait for
// minutes, in case its own is lost: once no attempt lies ahead, a restart makes all of them visible. Then dead letters
// are moved back.
func (r *run) settle(ctx context.Context) error {
	deadline := time.Now().Add(calmTime)
	for n, step := range []func(context.Context, *evidence) error{r.restart, r.redrive, r.complete} {
		e, err := r.await(ctx, deadline, n > 0)
		if err == nil {
			err = step(ctx, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// await looks until every delivery is there, none has an attempt ahead, the counters equal the attempts, and the queues are
// drained if they are to be. The counters follow an attempt by a second or two, and probes go on. What is missing for ten
// looks is lost. A look reads every delivery: it takes a fifth of the time at most.
func (r *run) await(ctx context.Context, deadline time.Time, drained bool) (*evidence, error) {
	const calmLooks, maxLooks = 2, 10
	var took time.Duration
	for looks, calm := 0, 0; ; looks++ {
		if err := pause.For(ctx, lookEvery+4*took); err != nil {
			return nil, err
		}
		began := time.Now()
		e, err := r.look(ctx)
		if err != nil {
			return nil, err
		}
		took = time.Since(began)
		pending, waiting, _ := e.left()
		if looks%5 == 0 || took > time.Second {
			r.say("%d of %d deliveries, %d pending, %d messages", len(e.deliveries), len(e.expected), pending, waiting)
		}
		if calm++; pending > 0 {
			calm = 0
		}
		missing := len(e.lost) > 0 || len(e.deliveries) < len(e.expected) || len(e.counted().broken) > 0 || drained && waiting > 0
		if calm >= maxLooks || calm >= calmLooks && !missing || time.Now().After(deadline) {
			return e, nil
		}
	}
}

// redrive moves dead letters and parked records back, as an operator does.
func (r *run) redrive(ctx context.Context, _ *evidence) error {
	for _, command := range []string{"redrive deliveries", "redrive records", "redrive index-jobs", "replay"} {
		said, err := r.service.Command(ctx, strings.Fields(command)...)
		r.say("commerce %s: %s %v", command, said, err)
	}
	return ctx.Err()
}

// complete judges the evidence with what the service's clients and commands see. It reads the feeds until they have every
// record, or until the latest change must be in them.
func (r *run) complete(ctx context.Context, e *evidence) error {
	const feedLate = 10 * time.Minute // at most, where clocks differ
	for _, receipt := range r.service.Receiver.Receipts() {
		if receipt.Status >= 200 && receipt.Status <= 299 {
			id := webhook.DeliveryID(receipt.Event, r.endpoints[receipt.Path].id)
			e.accepted[id] = append(e.accepted[id], receipt.At)
		}
	}
	e.restarts = r.restarts
	unread := e.readLog(filepath.Join(r.service.Dir, "service.log"))
	for end := time.Now().Add(feedLate); ; {
		for _, t := range r.tenants {
			if err := t.follow(ctx); err != nil {
				return fmt.Errorf("read the feed: %w", err)
			}
			maps.Copy(e.copied, t.copied)
		}
		if maps.Equal(e.copied, e.records) || time.Now().After(end) {
			break
		}
		if err := pause.For(ctx, lookEvery); err != nil {
			return err
		}
	}
	var err error
	if e.verified, err = r.service.Command(ctx, "verify"); err != nil {
		e.differs = []string{err.Error()}
	}
	return errors.Join(ctx.Err(), unread, r.report(e))
}
