package sweeper_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/dynamo/dynamotest"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/sweeper"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// sent collects what would go to the worker, with how long it waits.
type sent struct {
	mu         sync.Mutex
	delay      map[value.ID]time.Duration
	lanes      map[value.ID]webhook.Lane
	order      []value.ID // since the last reset
	everything []value.ID
	calls      int
	err        error
}

func (s *sent) Send(_ context.Context, lane webhook.Lane, now value.Time, rows ...*webhook.Delivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.err != nil {
		return s.err
	}
	for _, r := range rows {
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

// bench is a sweeper on a real table, with a clock that the test moves.
type bench struct {
	*sweeper.Sweeper
	table    *dynamo.Table
	sent     *sent
	index    *maintained
	backlog  *sweeper.Backlog
	org      value.ID
	app      value.ID
	endpoint *webhook.Endpoint
	now      time.Time
}

func newBench(t testing.TB) *bench {
	t.Helper()
	client, name := dynamotest.Client(t)
	b := &bench{org: value.NewID(), now: time.Now(), sent: &sent{delay: map[value.ID]time.Duration{}, lanes: map[value.ID]webhook.Lane{}}, index: &maintained{}}
	clock := func() time.Time { return b.now }
	b.table = dynamo.New(client, name, clock)
	b.app = dynamotest.Application(t, b.table, b.org)
	b.endpoint = dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
	b.Sweeper = sweeper.New(b.table, b.sent, sweeper.IndexCompaction{IndexQueue: b.index, Compactor: b.index}, sweeper.Config{
		Clock: clock, Logger: slog.New(slog.DiscardHandler),
	})
	b.backlog = sweeper.NewBacklog(b.table, b.sent, clock)
	return b
}

func (b *bench) pass(d time.Duration) { b.now = b.now.Add(d) }

func (b *bench) sweep(t *testing.T) map[value.ID]time.Duration {
	t.Helper()
	if answer, err := b.Handle(t.Context(), sweeper.Event{}); answer != nil || err != nil {
		t.Fatalf("a run of the schedule: %+v, %v; want no answer and no error", answer, err)
	}
	return b.sent.reset()
}

func (b *bench) row(t *testing.T, change func(*webhook.Delivery)) *webhook.Delivery {
	t.Helper()
	r := webhook.NewDelivery(&commerce.WebhookPayload{ID: value.NewID(), Type: "order.created"}, b.endpoint, "", value.TimeOf(b.now))
	change(r)
	if existing, err := b.table.CreateDelivery(t.Context(), r); existing != nil || err != nil {
		t.Fatalf("CreateRow: %+v, %v", existing, err)
	}
	return r
}

// waiting is a row whose next attempt lies ahead by a due mark.
func (b *bench) waiting(t *testing.T, d time.Duration) *webhook.Delivery {
	t.Helper()
	return b.row(t, func(r *webhook.Delivery) {
		at := value.TimeOf(b.now.Add(d))
		r.NextAttemptAt, r.DueAt, r.AttemptCount = &at, &at, 4
	})
}

// rows are rows of the bench's endpoint, written together.
func (b *bench) rows(t testing.TB, n int, change func(i int, r *webhook.Delivery)) []*webhook.Delivery {
	t.Helper()
	rows := make([]*webhook.Delivery, n)
	for i := range rows {
		rows[i] = webhook.NewDelivery(&commerce.WebhookPayload{ID: value.NewID(), Type: "order.created"}, b.endpoint, "", value.TimeOf(b.now))
		change(i, rows[i])
	}
	if _, err := b.table.CreateDeliveries(t.Context(), rows); err != nil {
		t.Fatalf("CreateRows: %v", err)
	}
	return rows
}

func (b *bench) held(t testing.TB, n int) []*webhook.Delivery {
	t.Helper()
	return b.rows(t, n, func(i int, r *webhook.Delivery) {
		r.Status, r.HeldReason, r.NextAttemptAt = webhook.DeliveryHeld, webhook.HeldPaused, nil
		r.CreatedAt += value.Time(i)
	})
}

func (b *bench) check(t *testing.T, r *webhook.Delivery, want webhook.DeliveryStatus) *webhook.Delivery {
	t.Helper()
	got, err := b.table.Delivery(t.Context(), b.org, r.ID)
	if err != nil || got.Status != want {
		t.Errorf("row %s: %+v, %v; want %s", r.ID, got, err, want)
	}
	return got
}

func TestDueRowsAreSentForTheirTime(t *testing.T) {
	b := newBench(t)
	past, soon, later := b.waiting(t, -time.Hour), b.waiting(t, 40*time.Second), b.waiting(t, 90*time.Second)
	got := b.sweep(t)
	if len(got) != 2 || got[past.ID] != -time.Hour || got[soon.ID].Round(time.Second) != 40*time.Second {
		t.Errorf("sent %v, want %s at once and %s in 40s", got, past.ID, soon.ID)
	}
	b.pass(time.Minute)
	if got := b.sweep(t); len(got) != 1 || got[later.ID].Round(time.Second) != 30*time.Second {
		t.Errorf("a minute later: sent %v, want %s in 30s", got, later.ID)
	}
	b.pass(time.Minute)
	if got := b.sweep(t); len(got) != 0 {
		t.Errorf("sent twice: %v", got)
	}
}

func TestRowWhoseMessageIsLostIsSentAgain(t *testing.T) {
	b := newBench(t)
	r := b.waiting(t, 0)
	b.sent.err = fault.Busy(errors.New("the queue is down"))
	if _, err := b.Handle(t.Context(), sweeper.Event{}); err == nil {
		t.Error("no error although nothing was sent")
	}
	b.sent.err = nil
	for range 2 {
		b.pass(8 * time.Minute)
		if got := b.sweep(t); len(got) != 0 {
			t.Errorf("within the lease: sent %v", got)
		}
		b.pass(2 * time.Minute)
		if got := b.sweep(t); len(got) != 1 {
			t.Errorf("after the lease: sent %v, want %s again", got, r.ID)
		}
	}
	stored := b.check(t, r, webhook.DeliveryPending)
	if _, err := b.table.PutDelivery(t.Context(), stored, stored.Cancel(value.TimeOf(b.now))); err != nil {
		t.Fatal(err)
	}
	b.pass(time.Hour)
	if got := b.sweep(t); len(got) != 0 {
		t.Errorf("a finished row was sent: %v", got)
	}
}

// After hours without a run, one send that fails does not cost a row as many
// hours again.
func TestALateRowIsSentSoonAfterASendThatFailed(t *testing.T) {
	b := newBench(t)
	b.waiting(t, 0)
	b.pass(10 * time.Hour)
	b.sent.err = fault.Busy(errors.New("the queue is down"))
	if _, err := b.Handle(t.Context(), sweeper.Event{}); err == nil {
		t.Error("no error although nothing was sent")
	}
	b.sent.err = nil
	b.pass(webhook.Lease)
	if got := b.sweep(t); len(got) != 1 {
		t.Errorf("sent %v after the lease, want the row", got)
	}
	b.pass(9 * time.Hour)
	if got := b.sweep(t); len(got) != 0 {
		t.Errorf("sent %v, though it was sent as late as it was", got)
	}
}

// Rows that wait in a long queue are sent again ever more rarely.
func TestLeaseGrowsWithLateness(t *testing.T) {
	b := newBench(t)
	b.waiting(t, 0)
	sends := 0
	for range 8 * 12 {
		sends += len(b.sweep(t))
		b.pass(5 * time.Minute)
	}
	if sends < 3 || sends > 8 {
		t.Errorf("sent %d times in eight hours, want a handful", sends)
	}
}

func TestOverlappingRunsSendOnce(t *testing.T) {
	b := newBench(t)
	for range 150 {
		b.waiting(t, 0)
	}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			if _, err := b.Handle(t.Context(), sweeper.Event{}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if len(b.sent.order) != 150 || len(b.sent.delay) != 150 {
		t.Errorf("%d messages for %d rows, want 150 for 150", len(b.sent.order), len(b.sent.delay))
	}
}

func (b *bench) recovery(t testing.TB, since, until time.Time) *webhook.Recovery {
	t.Helper()
	now := value.TimeOf(b.now)
	r := &webhook.Recovery{
		ID: value.NewID(), EndpointID: b.endpoint.ID, OrganizationID: b.org, Status: webhook.RecoveryRunning,
		Since: value.TimeOf(since), Until: value.TimeOf(until), CreatedAt: now, UpdatedAt: now,
	}
	if err := b.table.CreateRecovery(t.Context(), r, now); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecoverySendsEverythingOldestFirst(t *testing.T) {
	b := newBench(t)
	rows := b.held(t, 450)
	failed := b.row(t, func(r *webhook.Delivery) { r.Status, r.NextAttemptAt, r.AttemptCount = webhook.DeliveryFailed, nil, 9 })
	b.pass(time.Minute)
	outside := b.held(t, 1)[0]
	r := b.recovery(t, b.now.Add(-time.Hour), b.now.Add(-30*time.Second))
	first, err := b.backlog.Recover(t.Context(), r, 200)
	if err != nil || first.Status != webhook.RecoveryRunning || first.RequeuedCount != 200 {
		t.Fatalf("the first step: %+v, %v", first, err)
	}
	if want := rows[:199]; len(b.sent.order) != 200 || b.sent.order[199] != want[198].ID && b.sent.order[199] != rows[199].ID {
		t.Errorf("%d sent first, the last of them %s", len(b.sent.order), b.sent.order[len(b.sent.order)-1])
	}
	b.pass(time.Minute)
	b.sweep(t)
	done, err := b.table.Recovery(t.Context(), b.org, b.endpoint.ID, r.ID)
	if err != nil || done.Status != webhook.RecoveryCompleted || done.MatchedCount != 451 || done.RequeuedCount != 451 || done.CompletedAt == nil {
		t.Errorf("the end: %+v, %v", done, err)
	}
	for _, row := range append(slices.Clone(rows), failed) {
		got := b.check(t, row, webhook.DeliveryPending)
		if got.DueAt == nil || got.HeldReason != "" || got.ScheduleStart != got.AttemptCount {
			t.Errorf("row: %+v", got)
		}
	}
	b.check(t, outside, webhook.DeliveryHeld)
}

// A recovery whose rows fail again at once must end, and send each once.
func TestRecoveryDoesNotChaseItsOwnFailures(t *testing.T) {
	b := newBench(t)
	rows := b.held(t, 250)
	r := b.recovery(t, b.now.Add(-time.Hour), b.now.Add(time.Hour))
	first, err := b.backlog.Recover(t.Context(), r, 200)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[:200] {
		pending := b.check(t, row, webhook.DeliveryPending)
		reason := "no"
		failed := pending.Record(webhook.Outcome{Attempt: webhook.Attempt{At: value.TimeOf(b.now), Error: &reason}, Result: webhook.AttemptRefused}, "m", 0, 0, value.TimeOf(b.now))
		if _, err := b.table.PutDelivery(t.Context(), pending, failed); err != nil {
			t.Fatal(err)
		}
	}
	done, err := b.backlog.Recover(t.Context(), first, 10_000)
	if err != nil || done.Status != webhook.RecoveryCompleted || done.RequeuedCount != 250 {
		t.Errorf("the end: %+v, %v", done, err)
	}
}

func TestRecoveryOfAnEndpointThatIsNoLongerActiveIsCancelled(t *testing.T) {
	for name, stop := range map[string]func(*testing.T, *bench){
		"paused": func(t *testing.T, b *bench) { dynamotest.SetStatus(t, b.table, b.endpoint, webhook.Paused) },
		"deleted": func(t *testing.T, b *bench) {
			if _, err := b.table.DeleteEndpoint(t.Context(), b.org, b.endpoint.ID, func(*webhook.Endpoint) error { return nil }); err != nil {
				t.Fatal(err)
			}
		},
	} {
		b := newBench(t)
		rows := b.held(t, 3)
		r := b.recovery(t, b.now.Add(-time.Hour), b.now.Add(time.Hour))
		stop(t, b)
		if got := b.sweep(t); len(got) > 0 {
			t.Errorf("%s: sent %v", name, got)
		}
		done, err := b.table.Recovery(t.Context(), b.org, b.endpoint.ID, r.ID)
		if err != nil || done.Status != webhook.RecoveryCancelled || done.CompletedAt == nil {
			t.Errorf("%s: %+v, %v", name, done, err)
		}
		b.check(t, rows[0], webhook.DeliveryHeld)
	}
}

func TestRowsRequeuedByADyingRecoveryAreSent(t *testing.T) {
	b := newBench(t)
	rows := b.held(t, 3)
	r := b.recovery(t, b.now.Add(-time.Hour), b.now.Add(time.Hour))
	b.sent.err = fault.Busy(errors.New("the queue is down"))
	if _, err := b.backlog.Recover(t.Context(), r, 100); err == nil {
		t.Error("no error although nothing was sent")
	}
	b.sent.err = nil
	b.pass(webhook.Lease)
	got := b.sweep(t)
	for _, row := range rows {
		if _, ok := got[row.ID]; !ok {
			t.Errorf("row %s was not sent", row.ID)
		}
	}
	if done, err := b.table.Recovery(t.Context(), b.org, b.endpoint.ID, r.ID); err != nil || done.Status != webhook.RecoveryCompleted {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestRowsOfADeletedEndpointAreCancelled(t *testing.T) {
	b := newBench(t)
	rows := b.held(t, 250)
	failed := b.row(t, func(r *webhook.Delivery) { r.Status, r.NextAttemptAt = webhook.DeliveryFailed, nil })
	if _, err := b.table.DeleteEndpoint(t.Context(), b.org, b.endpoint.ID, func(*webhook.Endpoint) error { return nil }); err != nil {
		t.Fatal(err)
	}
	b.pass(2 * time.Minute)
	b.sweep(t)
	for _, row := range rows {
		b.check(t, row, webhook.DeliveryCancelled)
	}
	b.check(t, failed, webhook.DeliveryFailed)
	for shard := range dynamo.DueShards {
		if due, err := b.table.Due(t.Context(), shard, "", 1<<50, 10); len(due) > 0 || err != nil {
			t.Errorf("due marks left: %+v, %v", due, err)
		}
	}
}

func TestRunEndsWithItsTime(t *testing.T) {
	b := newBench(t)
	b.waiting(t, 0)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(4*time.Second)) // less than is spared
	defer cancel()
	if _, err := b.Handle(ctx, sweeper.Event{}); err != nil {
		t.Errorf("a run without time: %v, want it to leave the rest to the next", err)
	}
	if got := b.sent.reset(); len(got) > 0 {
		t.Errorf("sent %v", got)
	}
	if got := b.sweep(t); len(got) != 1 {
		t.Errorf("the next run sent %v", got)
	}
}
