package sweeper_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/sweeper"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/webhook"
)

// crowded is a store with one recovery for each of many endpoints. The deliveries of
// some never end; they are gone when they are read, so that only the order of
// the work is left to be seen.
type crowded struct {
	sweeper.Store
	due     []webhook.Due
	endless map[value.ID]bool // by recovery

	mu       sync.Mutex
	progress map[value.ID]*webhook.Recovery
	ended    []value.ID
	released map[value.ID]value.Time // the time from which the next run may go on
	busy     map[value.ID]bool
}

func newCrowded(endless, short int, now value.Time) *crowded {
	c := &crowded{
		endless: map[value.ID]bool{}, progress: map[value.ID]*webhook.Recovery{},
		released: map[value.ID]value.Time{}, busy: map[value.ID]bool{},
	}
	for i := range endless + short {
		r := &webhook.Recovery{
			ID: value.NewID(), EndpointID: value.NewID(), OrganizationID: value.NewID(),
			Status: webhook.RecoveryRunning, Until: now, UpdatedAt: now,
		}
		c.progress[r.ID], c.endless[r.ID] = r, i < endless
		at := now.Add(time.Duration(i-endless-short) * time.Second)
		c.due = append(c.due, webhook.Due{
			Kind: webhook.DueRecovery, OrganizationID: r.OrganizationID, ID: r.ID, EndpointID: r.EndpointID, At: at, Mark: at.String() + "#",
		})
	}
	return c
}

func (c *crowded) Beat(context.Context, value.Time) error { return nil }

func (c *crowded) Due(_ context.Context, shard int, after string, _ value.Time, _ int) ([]webhook.Due, error) {
	if shard > 0 || after != "" {
		return nil, nil
	}
	return c.due, nil
}

func (c *crowded) DueJobs(context.Context, int, value.Time, int) ([]index.Job, error) {
	return nil, nil
}

func (c *crowded) Postpone(_ context.Context, d webhook.Due, until value.Time) (*webhook.Due, *webhook.Delivery, error) {
	d.At, d.Mark = until, until.String()+"#"
	return &d, nil, nil
}

func (c *crowded) Recovery(_ context.Context, _, _, id value.ID) (*webhook.Recovery, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.progress[id], nil
}

func (c *crowded) Endpoint(_ context.Context, _, id value.ID) (*webhook.Endpoint, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[id] {
		return nil, errors.New("two work on the same endpoint")
	}
	c.busy[id] = true
	return &webhook.Endpoint{ID: id, Status: webhook.Active}, nil
}

func (c *crowded) Application(context.Context, value.ID, value.ID) (*account.Application, error) {
	return &account.Application{}, nil
}

func (c *crowded) Unsent(_ context.Context, _, endpoint value.ID, _, _ value.Time, cursor string, limit int) ([]webhook.UnsentDelivery, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	page := make([]webhook.UnsentDelivery, limit)
	for id, r := range c.progress {
		if r.EndpointID == endpoint && !c.endless[id] {
			page = page[:3]
		}
	}
	for i := range page {
		page[i] = webhook.UnsentDelivery{DeliveryID: value.NewID(), Cursor: cursor + "."}
	}
	return page, nil
}

func (c *crowded) Deliveries(context.Context, value.ID, []value.ID) (map[value.ID]*webhook.Delivery, error) {
	return nil, nil
}

func (c *crowded) PutRecovery(_ context.Context, _, next *webhook.Recovery, from value.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress[next.ID], c.released[next.ID], c.busy[next.EndpointID] = next, from, false
	if next.Status != webhook.RecoveryRunning {
		c.ended = append(c.ended, next.ID)
	}
	return nil
}

func TestRecoveriesWithoutEndDoNotStandBeforeTheOthers(t *testing.T) {
	now := time.Now()
	c := newCrowded(20, 30, value.TimeOf(now))
	s := sweeper.New(c, &sent{}, sweeper.IndexCompaction{}, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second) // of which five are spared
	defer cancel()
	if _, err := s.Handle(ctx, sweeper.Event{}); err != nil {
		t.Fatal(err)
	}
	if len(c.ended) != 30 {
		t.Errorf("%d recoveries ended, want the 30 that can", len(c.ended))
	}
	least, most := int64(1<<62), int64(0)
	for id, r := range c.progress {
		if !c.endless[id] {
			continue
		}
		least, most = min(least, r.MatchedCount), max(most, r.MatchedCount)
		if c.released[id] != value.TimeOf(now) {
			t.Errorf("recovery %s may be gone on with from %s, want at once, %s", id, c.released[id], value.TimeOf(now))
		}
	}
	if least < most/2 {
		t.Errorf("endless recoveries got between %d and %d deliveries, want about as many each", least, most)
	}
}

func TestDeliveriesAreSentBeforeAnythingThatTakesLong(t *testing.T) {
	h := newHarness(t)
	deliveries := h.held(t, 600)
	h.recovery(t, -time.Hour, time.Hour)
	waiting := h.waiting(t, 0)
	h.Pass(time.Second)
	h.sweep(t)
	h.sent.mu.Lock()
	defer h.sent.mu.Unlock()
	if first := h.sent.everything[0]; first != waiting.ID || len(h.sent.everything) != 601 {
		t.Errorf("the first of %d sent is %s, want %s, whose attempt is due, before the %d deliveries of a recovery",
			len(h.sent.everything), first, waiting.ID, len(deliveries))
	}
}

// A thousand deliveries of one organization that were due earlier do not stand
// before the single one of another.
func TestOrganizationsTakeTurns(t *testing.T) {
	h := newHarness(t)
	h.deliveries(t, 1000, func(_ int, r *webhook.Delivery) {
		at := h.At(-time.Minute)
		r.NextAttemptAt, r.DueAt, r.AttemptCount = &at, &at, 4
	})
	other := &harness{Service: h.Organization(t)}
	other.endpoint = other.Endpoint(t, "*")
	single := other.waiting(t, 0)
	h.sweep(t)
	place := slices.Index(h.sent.everything, single.ID)
	if len(h.sent.everything) != 1001 || place < 0 || place >= 400 { // four pages of a hundred at a time
		t.Errorf("the single delivery is the %dth of %d, want it among the first 400", place+1, len(h.sent.everything))
	}
}

// failing refuses some writes of deliveries, as a table does that throttles.
type failing struct {
	sweeper.BacklogStore
	mu    sync.Mutex
	calls int
	fails func(call int) bool
}

func (f *failing) PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (*webhook.Delivery, error) {
	f.mu.Lock()
	f.calls++
	fails := f.fails(f.calls)
	f.mu.Unlock()
	if fails {
		return nil, fault.Busy(errors.New("throttled"))
	}
	return f.BacklogStore.PutDelivery(ctx, previous, next)
}

func TestRecoveryCountsOnceThoughWritesAreRefused(t *testing.T) {
	h := newHarness(t)
	deliveries := h.held(t, 1200)
	r := h.recovery(t, -time.Hour, time.Hour)
	f := &failing{BacklogStore: h.Table, fails: func(call int) bool { return call%100 == 0 }}
	backlog := sweeper.NewBacklog(f, h.sent, h.Time)
	for tries := 0; r.Status == webhook.RecoveryRunning; tries++ {
		if tries > 100 {
			t.Fatalf("after %d tries: %+v", tries, r)
		}
		_, err := backlog.Recover(t.Context(), r, 10_000)
		if err != nil && !fault.Is(err, fault.Unavailable) {
			t.Fatal(err)
		}
		if r, err = h.Table.Recovery(t.Context(), h.Org, h.endpoint.ID, r.ID); err != nil {
			t.Fatal(err)
		}
	}
	if r.Status != webhook.RecoveryCompleted || r.MatchedCount != 1200 || r.RequeuedCount != 1200 {
		t.Errorf("the recovery: %+v, want 1,200 deliveries", r)
	}
	sent := slices.Clone(h.sent.everything)
	slices.SortFunc(sent, value.ID.Compare)
	if sent = slices.Compact(sent); len(sent) != 1200 || len(h.sent.everything) != 1200 {
		t.Errorf("%d messages for %d deliveries, want one for each of %d", len(h.sent.everything), len(sent), len(deliveries))
	}
}

// What somebody else changes while a recovery is at it stays as they made it.
func TestRecoveryLeavesDeliveriesThatOthersChange(t *testing.T) {
	h := newHarness(t)
	deliveries := h.held(t, 120)
	r := h.recovery(t, -time.Hour, time.Hour)
	f := &failing{BacklogStore: h.Table, fails: func(call int) bool {
		if call == 1 {
			for _, delivery := range deliveries[:30] {
				if _, err := h.Table.PutDelivery(t.Context(), delivery, delivery.Cancel(h.At(time.Second))); err != nil {
					t.Error(err)
				}
			}
		}
		return false
	}}
	done, err := sweeper.NewBacklog(f, h.sent, h.Time).Recover(t.Context(), r, 1000)
	if err != nil || done.Status != webhook.RecoveryCompleted || done.MatchedCount != 120 || done.RequeuedCount != 90 {
		t.Errorf("the recovery: %+v, %v; want 90 of 120 deliveries requeued", done, err)
	}
	for i, delivery := range deliveries {
		want := webhook.DeliveryPending
		if i < 30 {
			want = webhook.DeliveryCancelled
		}
		h.check(t, delivery, want)
	}
}
