package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/dispatcher"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

func TestEventsFollowTheStateOfTheirEndpoint(t *testing.T) {
	h := newHarness(t)
	open := &webhook.Circuit{State: webhook.CircuitOpen, OpenedAt: h.Now(), ProbeAt: h.At(time.Minute), IntervalMs: time.Minute.Milliseconds()}
	type outcome struct {
		held  webhook.HeldReason
		queue string // "": no message
	}
	want := map[value.ID]outcome{h.Endpoint(t, "*").ID: {"", servicetest.MainQueue}}
	for _, c := range []struct {
		routing webhook.Routing
		want    outcome
	}{
		{webhook.Routing{Lane: webhook.LaneSlow}, outcome{"", servicetest.SlowQueue}},
		{webhook.Routing{Circuit: open, Lane: webhook.LaneSlow}, outcome{webhook.HeldCircuitOpen, ""}},
		{webhook.Routing{Circuit: open.Drain(h.Now())}, outcome{"", servicetest.MainQueue}},
	} {
		e := h.Endpoint(t, "*")
		h.SetRouting(t, e.ID, func(r *webhook.Routing) { *r = c.routing })
		want[e.ID] = c.want
	}
	d := h.dispatcher(h.Table, h.Queues().Deliveries())
	h.dispatch(t, d, h.created(t)) // endpoints are read anew for the next batch
	suspended := h.Application(t)
	want[h.OfApplication(suspended).Endpoint(t, "*").ID] = outcome{webhook.HeldSuspended, ""}
	h.Suspend(t, suspended)
	for status, reason := range map[webhook.Status]webhook.HeldReason{webhook.Paused: webhook.HeldPaused, webhook.Disabled: webhook.HeldDisabled} {
		e := h.Endpoint(t, "*")
		h.SetStatus(t, e.ID, status)
		want[e.ID] = outcome{reason, ""}
	}
	h.dispatch(t, d, h.created(t))
	queues := map[value.ID]string{}
	for _, name := range []string{servicetest.MainQueue, servicetest.SlowQueue} {
		for id := range h.messagesOf(t, name) {
			queues[id] = name
		}
	}
	deliveries := h.AllDeliveries(t)
	for _, r := range deliveries {
		w := want[r.EndpointID]
		if r.HeldReason != w.held || (r.Status == webhook.DeliveryHeld) != (w.held != "") || queues[r.ID] != w.queue {
			t.Errorf("delivery %+v, its message in %q; want %+v", r, queues[r.ID], w)
		}
	}
	if len(deliveries) != 4+7 {
		t.Errorf("%d deliveries, want 4 of the first batch and 7 of the second", len(deliveries))
	}
}

// picky refuses one event for what it is.
type picky struct {
	dispatcher.Store
	refused value.ID
}

func (p *picky) CreateDeliveries(ctx context.Context, deliveries []*webhook.Delivery, payloads ...webhook.Payload) ([]*webhook.Delivery, map[value.ID]bool, error) {
	if slices.ContainsFunc(payloads, func(one webhook.Payload) bool { return one.EventID == p.refused }) {
		return nil, nil, errors.New("the item is too large")
	}
	return p.Store.CreateDeliveries(ctx, deliveries, payloads...)
}

func TestChangeWithRefusedEventsIsParked(t *testing.T) {
	h := newHarness(t)
	h.Endpoint(t, "*")
	bad := h.created(t)
	h.dispatch(t, h.dispatcher(h.Table, h.Queues().Deliveries()), bad)
	refused := h.AllDeliveries(t)[0].EventID
	h.messages(t)
	d := h.dispatcher(&picky{Store: h.Table, refused: refused}, h.Queues().Deliveries())
	h.dispatch(t, d, h.created(t), bad, h.created(t))
	if deliveries, messages := h.AllDeliveries(t), h.messages(t); len(deliveries) != 3 || len(messages) != 2 || messages[webhook.DeliveryID(refused, deliveries[0].EndpointID)] != nil {
		t.Errorf("%d deliveries and the messages %v, want those of the neighbours", len(deliveries), messages)
	}
	parked := h.Queues().Await(t, servicetest.ParkQueue)
	if _, record, err := queue.Unpark(parked[0].Body, nil); err != nil || len(parked) != 1 || record.Change.SequenceNumber != bad.Change.SequenceNumber {
		t.Errorf("parked %d: %+v, %v", len(parked), record, err)
	}
}

// sized notes how many deliveries come together.
type sized struct {
	dispatcher.Store
	deliveries []int
	of         []map[value.ID]int // events by organization
}

func (s *sized) CreateDeliveries(ctx context.Context, deliveries []*webhook.Delivery, payloads ...webhook.Payload) ([]*webhook.Delivery, map[value.ID]bool, error) {
	of := map[value.ID]int{}
	for _, p := range payloads {
		of[p.OrganizationID]++
	}
	s.deliveries, s.of = append(s.deliveries, len(deliveries)), append(s.of, of)
	return s.Store.CreateDeliveries(ctx, deliveries, payloads...)
}

func TestAnOrganizationWithFewEventsDoesNotWaitForOneWithMany(t *testing.T) {
	h := newHarness(t)
	other := &harness{h.Organization(t), map[value.ID]*webhook.Delivery{}}
	h.Endpoint(t, "*")
	other.Endpoint(t, "*")
	for _, test := range []struct {
		events int // of the one, between them one of the other
		want   []map[value.ID]int
	}{
		{12, []map[value.ID]int{{h.Org: 12, other.Org: 1}}},
		{13, []map[value.ID]int{{other.Org: 1}, {h.Org: 13}}},
	} {
		var batch []events.DynamoDBEventRecord
		for i := range test.events {
			if i == test.events/2 {
				batch = append(batch, other.created(t))
			}
			batch = append(batch, h.created(t))
		}
		s := &sized{Store: h.Table}
		h.dispatch(t, h.dispatcher(s, h.Queues().Deliveries()), batch...)
		if diff := cmp.Diff(test.want, s.of); diff != "" {
			t.Errorf("%d events: written together, want-got:\n%s", test.events, diff)
		}
		if messages := h.messages(t); len(messages) != test.events+1 {
			t.Errorf("%d messages, want %d", len(messages), test.events+1)
		}
	}
}

// late is a context with little time left, which never ends: however slow the
// machine is, what has begun is finished.
type late struct {
	context.Context
	left time.Duration
}

func (l late) Deadline() (time.Time, bool) { return time.Now().Add(l.left), true }

// Whatever the endpoints of an organization make of a batch, it is written in
// pieces, and what time does not suffice for is left to the next try.
func TestLargeBatchGoesInRoundsAsFarAsTimeAllows(t *testing.T) {
	h := newHarness(t)
	for range 30 {
		h.Endpoint(t, "*")
	}
	batch := make([]events.DynamoDBEventRecord, 50)
	for i := range batch {
		batch[i] = h.created(t)
	}
	s := &sized{Store: h.Table}
	d := h.dispatcher(s, h.Queues().Deliveries())
	ctx := late{t.Context(), 8 * time.Second} // less than another round asks for
	r, err := d.Handle(ctx, events.DynamoDBEvent{Records: batch})
	if err != nil || len(r.BatchItemFailures) != 1 || r.BatchItemFailures[0].ItemIdentifier != batch[33].Change.SequenceNumber {
		t.Fatalf("failures: %+v, %v; want the first record of the second round, %s", r, err, batch[33].Change.SequenceNumber)
	}
	h.dispatch(t, d, batch[33:]...)
	if want := []int{990, 510}; !slices.Equal(s.deliveries, want) {
		t.Errorf("deliveries written together: %v, want %v", s.deliveries, want)
	}
	if deliveries, messages := h.AllDeliveries(t), h.messages(t); len(deliveries) != 1500 || len(messages) != 1500 {
		t.Errorf("%d deliveries and %d messages, want 1,500", len(deliveries), len(messages))
	}
}
