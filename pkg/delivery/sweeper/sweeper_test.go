package sweeper_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/sweeper"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// sent collects what would go to the worker, with how long it waits.
type sent struct {
	mu         sync.Mutex
	delay      map[value.ID]time.Duration
	lanes      map[value.ID]webhook.Lane
	order      []value.ID // since the last reset
	everything []value.ID
	err        error
}

func (s *sent) Send(_ context.Context, lane webhook.Lane, now value.Time, deliveries ...*webhook.Delivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	for _, r := range deliveries {
		s.delay[r.ID] = r.NextAttemptAt.Std().Sub(now.Std())
		s.lanes[r.ID] = lane
		s.order, s.everything = append(s.order, r.ID), append(s.everything, r.ID)
	}
	return nil
}

func (s *sent) reset() map[value.ID]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.delay
	s.delay, s.order = map[value.ID]time.Duration{}, nil
	return got
}

// harness is a sweeper over the shared fixture, with one endpoint. What it
// would send is collected.
type harness struct {
	*servicetest.Service
	*sweeper.Sweeper
	sent     *sent
	index    *maintained
	backlog  *sweeper.Backlog
	endpoint *webhook.Endpoint
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	s := servicetest.New(t)
	h := &harness{
		Service: s, sent: &sent{delay: map[value.ID]time.Duration{}, lanes: map[value.ID]webhook.Lane{}},
		index: &maintained{}, endpoint: s.Endpoint(t, "*"),
	}
	h.Sweeper = sweeper.New(s.Table, h.sent, sweeper.IndexCompaction{IndexQueue: h.index, Compactor: h.index}, s.Time, s.Leaks.Logger())
	h.backlog = sweeper.NewBacklog(s.Table, h.sent, s.Time)
	return h
}

func (h *harness) sweep(t *testing.T) map[value.ID]time.Duration {
	t.Helper()
	if answer, err := h.Handle(t.Context(), sweeper.Event{}); answer != nil || err != nil {
		t.Fatalf("a run of the schedule: %+v, %v; want no answer and no error", answer, err)
	}
	return h.sent.reset()
}

// sweepAnew is a run of which only those deliveries count that were not sent
// before: no worker takes a message, so that another one follows.
func (h *harness) sweepAnew(t *testing.T) map[value.ID]time.Duration {
	t.Helper()
	before := slices.Clone(h.sent.everything)
	got := h.sweep(t)
	for _, id := range before {
		delete(got, id)
	}
	return got
}

// deliveries are deliveries of the harness's endpoint.
func (h *harness) deliveries(t testing.TB, n int, change func(i int, r *webhook.Delivery)) []*webhook.Delivery {
	t.Helper()
	return h.Deliveries(t, h.endpoint, n, change)
}

func (h *harness) delivery(t *testing.T, change func(*webhook.Delivery)) *webhook.Delivery {
	t.Helper()
	return h.deliveries(t, 1, func(_ int, r *webhook.Delivery) { change(r) })[0]
}

// waiting is a delivery whose next attempt lies ahead by a due mark.
func (h *harness) waiting(t *testing.T, d time.Duration) *webhook.Delivery {
	t.Helper()
	return h.delivery(t, func(r *webhook.Delivery) {
		at := h.At(d)
		r.NextAttemptAt, r.DueAt, r.AttemptCount = &at, &at, 4
	})
}

func (h *harness) held(t testing.TB, n int) []*webhook.Delivery {
	t.Helper()
	return h.deliveries(t, n, func(i int, r *webhook.Delivery) {
		r.Status, r.HeldReason, r.NextAttemptAt = webhook.DeliveryHeld, webhook.HeldPaused, nil
		r.CreatedAt += value.Time(i)
	})
}

func (h *harness) check(t *testing.T, r *webhook.Delivery, want webhook.DeliveryStatus) *webhook.Delivery {
	t.Helper()
	got := h.StoredDelivery(t, r.ID)
	if got.Status != want {
		t.Errorf("delivery %s: %+v; want %s", r.ID, got, want)
	}
	return got
}

func TestDueDeliveriesAreSentForTheirTime(t *testing.T) {
	h := newHarness(t)
	past, soon, later := h.waiting(t, -time.Hour), h.waiting(t, 40*time.Second), h.waiting(t, 90*time.Second)
	got := h.sweep(t)
	if len(got) != 2 || got[past.ID] != -time.Hour || got[soon.ID].Round(time.Second) != 40*time.Second {
		t.Errorf("sent %v, want %s at once and %s in 40s", got, past.ID, soon.ID)
	}
	h.Pass(time.Minute)
	if got := h.sweep(t); len(got) != 1 || got[later.ID].Round(time.Second) != 30*time.Second {
		t.Errorf("a minute later: sent %v, want %s in 30s", got, later.ID)
	}
	h.Pass(time.Minute)
	if got := h.sweep(t); len(got) != 1 || got[soon.ID].Round(time.Second) != -80*time.Second {
		t.Errorf("two minutes later: sent %v, want %s again, which is late, and not the two whose leases last", got, soon.ID)
	}
}

// A run that dies while it sends leaves the marks as one whose queue fails.
func TestDeathOfASenderCostsTwoMinutesAtMost(t *testing.T) {
	for name, tt := range map[string]struct {
		due     time.Duration // of the attempt, from the run that dies
		prepare func(t *testing.T, h *harness, due time.Duration) *webhook.Delivery
	}{
		"a retry":          {0, func(t *testing.T, h *harness, due time.Duration) *webhook.Delivery { return h.waiting(t, due) }},
		"a retry to come":  {59 * time.Second, func(t *testing.T, h *harness, due time.Duration) *webhook.Delivery { return h.waiting(t, due) }},
		"a retry long ago": {-10 * time.Hour, func(t *testing.T, h *harness, due time.Duration) *webhook.Delivery { return h.waiting(t, due) }},
		"a probe":          {0, probed},
		"a probe to come":  {59 * time.Second, probed},
		"a probe long ago": {-10 * time.Hour, probed},
		"a closed circuit's": {0, func(t *testing.T, h *harness, due time.Duration) *webhook.Delivery {
			held := probed(t, h, due)
			h.closes(t)
			return held
		}},
		"a recovery's": {0, func(t *testing.T, h *harness, _ time.Duration) *webhook.Delivery {
			held := h.held(t, 1)[0]
			h.recovery(t, -time.Hour, time.Hour)
			return held
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			delivery := tt.prepare(t, h, tt.due)
			h.sent.err = fault.Busy(errors.New("the queue is down"))
			if _, err := h.Handle(t.Context(), sweeper.Event{}); err == nil {
				t.Error("no error although nothing was sent")
			}
			h.sent.err = nil
			for passed := time.Minute; ; passed += time.Minute {
				if passed > max(0, tt.due)+2*time.Minute {
					t.Fatalf("the delivery was not sent %s after the death", passed)
				}
				h.Pass(time.Minute)
				if _, sent := h.sweep(t)[delivery.ID]; sent {
					return
				}
			}
		})
	}
}

// probed is a delivery that is held by a circuit, which is to be probed.
func probed(t *testing.T, h *harness, due time.Duration) *webhook.Delivery {
	t.Helper()
	held := h.kept(t, 1)[0]
	h.open(t, due)
	return held
}

// Deliveries that wait in a long queue are sent again ever more rarely, and one
// that has ended is not.
func TestLeaseGrowsWithLateness(t *testing.T) {
	h := newHarness(t)
	delivery := h.waiting(t, 0)
	sends := 0
	for range 8 * 12 {
		sends += len(h.sweep(t))
		h.Pass(5 * time.Minute)
	}
	if sends < 3 || sends > 8 {
		t.Errorf("sent %d times in eight hours, want a handful", sends)
	}
	h.ChangeDelivery(t, delivery.ID, func(d *webhook.Delivery) *webhook.Delivery { return d.Cancel(h.Now()) })
	h.Pass(24 * time.Hour)
	if got := h.sweep(t); len(got) != 0 {
		t.Errorf("a finished delivery was sent: %v", got)
	}
}

func (h *harness) recovery(t testing.TB, since, until time.Duration) *webhook.Recovery {
	t.Helper()
	now := h.Now()
	r := &webhook.Recovery{
		ID: value.NewID(), EndpointID: h.endpoint.ID, OrganizationID: h.Org, Status: webhook.RecoveryRunning,
		Since: h.At(since), Until: h.At(until), CreatedAt: now, UpdatedAt: now,
	}
	if err := h.Table.CreateRecovery(t.Context(), r, now); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecoverySendsEverythingOldestFirst(t *testing.T) {
	h := newHarness(t)
	deliveries := h.held(t, 450)
	failed := h.delivery(t, func(r *webhook.Delivery) { r.Status, r.NextAttemptAt, r.AttemptCount = webhook.DeliveryFailed, nil, 9 })
	h.Pass(time.Minute)
	outside := h.held(t, 1)[0]
	r := h.recovery(t, -time.Hour, -30*time.Second)
	first, err := h.backlog.Recover(t.Context(), r, 200)
	if err != nil || first.Status != webhook.RecoveryRunning || first.RequeuedCount != 200 {
		t.Fatalf("the first step: %+v, %v", first, err)
	}
	if want := deliveries[:199]; len(h.sent.order) != 200 || h.sent.order[199] != want[198].ID && h.sent.order[199] != deliveries[199].ID {
		t.Errorf("%d sent first, the last of them %s", len(h.sent.order), h.sent.order[len(h.sent.order)-1])
	}
	h.Pass(time.Minute)
	h.sweep(t)
	done, err := h.Table.Recovery(t.Context(), h.Org, h.endpoint.ID, r.ID)
	if err != nil || done.Status != webhook.RecoveryCompleted || done.MatchedCount != 451 || done.RequeuedCount != 451 || done.CompletedAt == nil {
		t.Errorf("the end: %+v, %v", done, err)
	}
	for _, delivery := range append(slices.Clone(deliveries), failed) {
		got := h.check(t, delivery, webhook.DeliveryPending)
		if got.DueAt == nil || got.HeldReason != "" || got.ScheduleStart != got.AttemptCount {
			t.Errorf("delivery: %+v", got)
		}
	}
	h.check(t, outside, webhook.DeliveryHeld)
}

// A recovery whose deliveries fail again at once must end, and send each once.
func TestRecoveryDoesNotChaseItsOwnFailures(t *testing.T) {
	h := newHarness(t)
	deliveries := h.held(t, 250)
	r := h.recovery(t, -time.Hour, time.Hour)
	first, err := h.backlog.Recover(t.Context(), r, 200)
	if err != nil {
		t.Fatal(err)
	}
	for _, delivery := range deliveries[:200] {
		pending := h.check(t, delivery, webhook.DeliveryPending)
		reason := "no"
		failed := pending.Record(webhook.Outcome{Attempt: webhook.Attempt{At: h.Now(), Error: &reason}, Result: webhook.AttemptRefused}, "m", 0, 0, h.Now())
		if _, err := h.Table.PutDelivery(t.Context(), pending, failed); err != nil {
			t.Fatal(err)
		}
	}
	done, err := h.backlog.Recover(t.Context(), first, 10_000)
	if err != nil || done.Status != webhook.RecoveryCompleted || done.RequeuedCount != 250 {
		t.Errorf("the end: %+v, %v", done, err)
	}
}

func TestRecoveryOfAnEndpointThatIsNoLongerActiveIsCancelled(t *testing.T) {
	for name, stop := range map[string]func(*testing.T, *harness){
		"paused":  func(t *testing.T, h *harness) { h.SetStatus(t, h.endpoint.ID, webhook.Paused) },
		"deleted": func(t *testing.T, h *harness) { h.DeleteEndpoint(t, h.endpoint.ID) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			deliveries := h.held(t, 3)
			r := h.recovery(t, -time.Hour, time.Hour)
			stop(t, h)
			if got := h.sweep(t); len(got) > 0 {
				t.Errorf("sent %v", got)
			}
			done, err := h.Table.Recovery(t.Context(), h.Org, h.endpoint.ID, r.ID)
			if err != nil || done.Status != webhook.RecoveryCancelled || done.CompletedAt == nil {
				t.Errorf("%+v, %v", done, err)
			}
			h.check(t, deliveries[0], webhook.DeliveryHeld)
		})
	}
}

func TestDeliveriesOfADeletedEndpointAreCancelled(t *testing.T) {
	h := newHarness(t)
	deliveries := h.held(t, 250)
	failed := h.delivery(t, func(r *webhook.Delivery) { r.Status, r.NextAttemptAt = webhook.DeliveryFailed, nil })
	h.DeleteEndpoint(t, h.endpoint.ID)
	h.Pass(2 * time.Minute)
	h.sweep(t)
	for _, delivery := range deliveries {
		h.check(t, delivery, webhook.DeliveryCancelled)
	}
	h.check(t, failed, webhook.DeliveryFailed)
	for shard := range dynamo.Shards {
		if due, err := h.Table.Due(t.Context(), shard, "", 1<<50, 10); len(due) > 0 || err != nil {
			t.Errorf("due marks left: %+v, %v", due, err)
		}
	}
}

func TestRunEndsWithItsTime(t *testing.T) {
	h := newHarness(t)
	h.waiting(t, 0)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(4*time.Second)) // less than is spared
	defer cancel()
	if _, err := h.Handle(ctx, sweeper.Event{}); err != nil {
		t.Errorf("a run without time: %v, want it to leave the rest to the next", err)
	}
	if got := h.sent.reset(); len(got) > 0 {
		t.Errorf("sent %v", got)
	}
	if got := h.sweep(t); len(got) != 1 {
		t.Errorf("the next run sent %v", got)
	}
}
