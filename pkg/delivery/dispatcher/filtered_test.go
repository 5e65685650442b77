package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/delivery/dispatcher"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/webhook"
)

// orders are the stream records of n new orders.
func (h *harness) orders(t *testing.T, n int) (records []events.DynamoDBEventRecord) {
	t.Helper()
	for range n {
		h.Put(t, commerce.KindOrder, nil, order(value.NewID(), "PENDING"), nil)
	}
	return h.StreamRecords(t, dynamo.StreamRecord)
}

// confirmedOnly makes an endpoint that filters all but confirmed orders.
func (h *harness) confirmedOnly(t *testing.T) *webhook.Endpoint {
	t.Helper()
	e := h.Endpoint(t, "order.*")
	h.ChangeEndpoint(t, e.ID, func(e *webhook.Endpoint) {
		e.Delivery.Filter = jsontext.Value(`{"object":{"status":["CONFIRMED"]}}`)
	})
	return e
}

// filtered is what the statistics count of the last two hours.
func (h *harness) filtered(t *testing.T, e *webhook.Endpoint) int64 {
	t.Helper()
	hours, err := h.Table.Stats(t.Context(), h.Org, e.ID, webhook.StatsHour.Start(h.At(-time.Hour)), h.At(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, p := range webhook.Stats(hours, webhook.StatsHour, h.At(-time.Hour), h.At(1)) {
		total += p.FilteredCount
	}
	return total
}

func TestAFilteredEventHasNoDeliveryAndIsCounted(t *testing.T) {
	h := newHarness(t)
	e, all := h.confirmedOnly(t), h.Endpoint(t, "order.created")
	d := h.dispatcher(h.Table, h.Queues().Deliveries())
	h.dispatch(t, d, h.orders(t, 3)...)
	old := h.Put(t, commerce.KindOrder, nil, order(value.NewID(), "PENDING"), nil)
	h.Put(t, commerce.KindOrder, old, order(old.ID, "CONFIRMED"), nil)
	h.dispatch(t, d, h.StreamRecords(t, dynamo.StreamRecord)...)
	got := map[string]int{}
	for _, delivery := range h.AllDeliveries(t) {
		got[fmt.Sprint(delivery.Type, " ", delivery.EndpointID == e.ID)]++
	}
	want := map[string]int{"order.created false": 4, "order.updated true": 1, "order.confirmed true": 1}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("deliveries %v, want %v", got, want)
	}
	h.Pass(time.Minute)
	h.dispatch(t, d)
	if n := h.filtered(t, e); n != 4 {
		t.Errorf("%d are counted, want 4", n)
	}
	if n := h.filtered(t, all); n != 0 {
		t.Errorf("%d are counted of an endpoint without a filter", n)
	}
}

// unfiltered counts the writes of filtered events, and fails them when told, or
// those of deliveries.
type unfiltered struct {
	dispatcher.Store

	writes        int
	fails, breaks bool
}

func (s *unfiltered) CreateDeliveries(ctx context.Context, deliveries []*webhook.Delivery, payloads ...webhook.Payload) ([]*webhook.Delivery, map[value.ID]bool, error) {
	if s.breaks {
		return nil, nil, fault.Busy(errors.New("throttled"))
	}
	return s.Store.CreateDeliveries(ctx, deliveries, payloads...)
}

func (s *unfiltered) AddFiltered(ctx context.Context, org, endpoint value.ID, hour value.Time, events int64) error {
	s.writes++
	if s.fails {
		return errors.New("no")
	}
	return s.Store.AddFiltered(ctx, org, endpoint, hour, events)
}

func TestFilteredEventsAreWrittenAtMostOnceAMinute(t *testing.T) {
	h := newHarness(t)
	now := h.Time()
	h.Pass(now.Truncate(time.Hour).Add(time.Hour).Sub(now)) // the start of an hour, since each hour is a write of its own
	e := h.confirmedOnly(t)
	store := &unfiltered{Store: h.Table}
	d := h.dispatcher(store, h.Queues().Deliveries())
	for range 5 {
		h.dispatch(t, d, h.orders(t, 2)...)
		h.Pass(10 * time.Second)
	}
	if n := h.filtered(t, e); store.writes != 1 || n != 2 {
		t.Errorf("%d writes of %d events within a minute, want 1 of the first 2", store.writes, n)
	}
	h.Pass(10 * time.Second)
	h.dispatch(t, d) // any batch writes what is due
	if n := h.filtered(t, e); store.writes != 2 || n != 10 {
		t.Errorf("%d writes of %d events, want 2 of 10", store.writes, n)
	}
	h.Pass(time.Hour)
	h.dispatch(t, d, h.orders(t, 1)...)
	if n := h.filtered(t, e); store.writes != 3 || n != 11 {
		t.Errorf("%d writes of %d events, want 3 of 11", store.writes, n)
	}
}

func TestFilteredEventsAreCountedOnceThoughWritesFail(t *testing.T) {
	for name, s := range map[string]*unfiltered{"of the counts": {fails: true}, "of deliveries": {breaks: true}} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			e := h.confirmedOnly(t)
			h.Endpoint(t, "order.created")
			s.Store = h.Table
			d, records := h.dispatcher(s, h.Queues().Deliveries()), h.orders(t, 2)
			if r := h.handle(t, d, records...); (len(r.BatchItemFailures) > 0) != s.breaks {
				t.Errorf("failures of the batch: %+v", r)
			}
			again := s.breaks
			s.fails, s.breaks = false, false
			h.Pass(time.Minute)
			if again {
				h.dispatch(t, d, records...)
			} else {
				h.dispatch(t, d)
			}
			if n := h.filtered(t, e); n != 2 {
				t.Errorf("%d are counted, want 2", n)
			}
		})
	}
}
