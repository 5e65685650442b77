package chaos

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/local/clocks"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/webhook"
)

// expectation is a delivery that must exist: an event for an endpoint that
// subscribes to it.
type expectation struct {
	endpoint  value.ID
	eventType string
	retries   int // of the endpoint
}

// evidence is what is known after a run.
type evidence struct {
	at time.Time // of the look at the service; what happened later does not count

	// What was sent, and what must exist because of it.
	events   int
	lost     []put                    // records that the table does not hold
	records  map[value.ID]value.Time  // that it holds, with their times
	expected map[value.ID]expectation // by the delivery's id

	// What the service has stored.
	deliveries map[value.ID]*webhook.Delivery
	counters   map[value.ID]webhook.Counters // by endpoint
	marks      map[value.ID]time.Time        // of deliveries under a due mark

	// What the run did, and what the receivers and the service logged.
	requests   []request
	attempts   []attempt
	complaints []complaint
	kills      []kill
	clocks     clocks.Clocks // of the service's processes
	copies     []duplicate
	copied     map[value.ID]value.Time // the records of integrators' copies
	reads      int                     // entries that the copies read
	fed        map[value.ID]value.Time // the records of their copies by the feed
	changes    int                     // that those read
	disordered []value.ID              // records of which the feed showed an earlier state after a later one
	held       int                     // messages that were received and became visible late

	queues   []workload.Queue
	redriven map[string]string // the output of commerce redrive, by command
	differs  string            // the output of commerce verify when it found a difference, else ""
	waits    string            // the output of commerce status when it found messages that wait, else ""
}

// collect reads what the service has stored. Only what was sent before counts.
// Records that an earlier look has found are stored once and read no more.
func collect(ctx context.Context, table *dynamo.Table, tenants []*tenant, puts []put, found map[value.ID]value.Time) (*evidence, error) {
	e := &evidence{at: time.Now(), records: map[value.ID]value.Time{}, expected: map[value.ID]expectation{}, deliveries: map[value.ID]*webhook.Delivery{}, counters: map[value.ID]webhook.Counters{}}
	for _, t := range tenants {
		if err := e.expect(ctx, table, t, puts, found); err != nil {
			return nil, err
		}
		err := ops.EachDelivery(ctx, table, t.ID, func(r *webhook.Delivery) error {
			e.deliveries[r.ID] = r
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
	return e, nil
}

// dueMarks reads the due marks of deliveries.
func dueMarks(ctx context.Context, table *dynamo.Table) (map[value.ID]time.Time, error) {
	const page = 1000
	marks := map[value.ID]time.Time{}
	for shard := range dynamo.DueShards {
		for after, more := "", true; more; {
			due, err := table.Due(ctx, shard, after, value.TimeOf(time.Now().AddDate(1, 0, 0)), page)
			if err != nil {
				return nil, fmt.Errorf("read the due marks: %w", err)
			}
			for _, d := range due {
				if after = d.Mark; d.Kind == webhook.DueDelivery {
					marks[d.ID] = d.At.Std()
				}
			}
			more = len(due) > 0
		}
	}
	return marks, nil
}

// expect adds the deliveries of an organization's records. An event's id follows
// from the revision of its record, which is stored once.
func (e *evidence) expect(ctx context.Context, table *dynamo.Table, t *tenant, puts []put, found map[value.ID]value.Time) error {
	byKind := map[commerce.Kind][]put{}
	for _, p := range puts {
		if p.of == t {
			byKind[p.kind] = append(byKind[p.kind], p)
			e.events += len(p.events)
		}
	}
	for kind, sent := range byKind {
		var ids []value.ID
		for _, p := range sent {
			if _, known := found[p.id]; !known {
				ids = append(ids, p.id)
			}
		}
		stored, err := table.Records(ctx, t.ID, kind, ids)
		if err != nil {
			return fmt.Errorf("read the records of an organization: %w", err)
		}
		for _, p := range sent {
			revision, known := found[p.id]
			if s := stored[p.id]; s != nil {
				revision, known = s.Revision, true
			}
			if !known {
				e.lost = append(e.lost, p)
				continue
			}
			e.records[p.id] = revision
			e.expectEvents(t, p, revision)
		}
	}
	return nil
}

func (e *evidence) expectEvents(t *tenant, p put, revision value.Time) {
	for _, eventType := range p.events {
		event := commerce.EventID(p.kind, t.ID, p.id, revision, eventType)
		for _, to := range t.endpoints {
			if commerce.Matches(to.subscribed, eventType) {
				e.expected[webhook.DeliveryID(event, to.id)] = expectation{to.id, eventType, to.retries}
			}
		}
	}
}

// pending counts the deliveries that have an attempt ahead, and tells when the
// last of them is due. It leaves out the probe of an open circuit, which is
// repeated as long as its endpoint is dead.
func (e *evidence) pending() (n int, last time.Time) {
	for _, r := range e.deliveries {
		if !r.Pending() || r.Probe {
			continue
		}
		n++
		if at := r.NextAttemptAt; at != nil && at.Std().After(last) {
			last = at.Std()
		}
	}
	return n, last
}

// waiting counts the messages that a function will take, without those of
// probes.
func (e *evidence) waiting() (n int) {
	for i := range e.queues {
		if !e.queues[i].Dead {
			n += e.queues[i].All()
		}
	}
	for _, r := range e.deliveries {
		if r.Pending() && r.Probe {
			n--
		}
	}
	return n
}
