package dynamo_test

import (
	"bytes"
	"errors"
	"hash/fnv"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// tableAt returns a table whose clock the test sets.
func tableAt(t *testing.T, now *value.Time) *dynamo.Table {
	client, name := dynamotest.Client(t)
	return dynamo.New(client, name, func() time.Time { return now.Std() })
}

func makeRow(org value.ID, e *webhook.Endpoint, hold webhook.HeldReason, at value.Time) *webhook.Delivery {
	return webhook.NewDelivery(&commerce.WebhookPayload{ID: value.NewID(), Type: "order.created", OrganizationID: org}, e, hold, at)
}

func createRow(t *testing.T, table *dynamo.Table, r *webhook.Delivery) *webhook.Delivery {
	t.Helper()
	if _, err := table.PutDelivery(t.Context(), r.StoredAt(0), r); err != nil {
		t.Fatalf("PutDelivery: %v", err)
	}
	return r
}

func TestRowIsCreatedOnce(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	first := createRow(t, table, makeRow(org, makeEndpoint(org, value.NewID()), "", value.TimeOf(time.Now())))
	second := *first
	second.CreatedAt++
	existing, err := table.PutDelivery(t.Context(), second.StoredAt(0), &second)
	if !errors.Is(err, fault.ErrChanged) || cmp.Diff(existing, first) != "" {
		t.Errorf("PutDelivery again: %v\n%s", err, cmp.Diff(existing, first))
	}
	for owner, want := range map[value.ID]*webhook.Delivery{org: first, value.NewID(): nil} {
		if got, err := table.Delivery(t.Context(), owner, first.ID); err != nil || cmp.Diff(got, want) != "" {
			t.Errorf("Row of %s: %v\n%s", owner, err, cmp.Diff(got, want))
		}
	}
}

func TestFasterWriterOfARowWins(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	r := createRow(t, table, makeRow(org, makeEndpoint(org, value.NewID()), "", value.TimeOf(time.Now())))
	held, cancelled := r.Hold(webhook.HeldPaused, r.UpdatedAt+5), r.Cancel(r.UpdatedAt+9)
	if _, err := table.PutDelivery(t.Context(), r, held); err != nil {
		t.Fatal(err)
	}
	if current, err := table.PutDelivery(t.Context(), r, held); !errors.Is(err, fault.ErrChanged) || cmp.Diff(current, held) != "" {
		t.Errorf("another writer of the same: %v, want ErrChanged\n%s", err, cmp.Diff(current, held))
	}
	current, err := table.PutDelivery(t.Context(), r, cancelled)
	if !errors.Is(err, fault.ErrChanged) || cmp.Diff(current, held) != "" {
		t.Errorf("another write: %v\n%s", err, cmp.Diff(current, held))
	}
}

func TestDeliveriesAreReadTogether(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	e := newEndpoint(t, table, org, newApplication(t, table, org))
	r := createRow(t, table, makeRow(org, e, "", value.TimeOf(time.Now())))
	must(t, table.PutPayload(t.Context(), org, r.EventID, []byte("{}")))
	expired := r.Ref()
	expired.DeliveryID, expired.EventID = value.NewID(), value.NewID()
	orphan := webhook.DeliveryRef{OrganizationID: org, DeliveryID: value.NewID(), EventID: value.NewID(), EndpointID: value.NewID(), ApplicationID: value.NewID()}
	foreign := r.Ref()
	foreign.OrganizationID = value.NewID()
	got, err := table.DeliveryInputs(t.Context(), []webhook.DeliveryRef{r.Ref(), expired, orphan, foreign, r.Ref()})
	full := webhook.DeliveryInput{Delivery: r, Payload: []byte("{}"), Endpoint: e, Application: webhook.ApplicationActive}
	want := []webhook.DeliveryInput{full, {Endpoint: e, Application: webhook.ApplicationActive}, {}, {}, full}
	if err != nil || cmp.Diff(got, want) != "" {
		t.Errorf("Deliveries: %v\n%s", err, cmp.Diff(got, want))
	}
	other := r.Ref()
	other.EndpointID = value.NewID()
	if _, err := table.DeliveryInputs(t.Context(), []webhook.DeliveryRef{other}); err == nil || !strings.Contains(err.Error(), "another event") {
		t.Errorf("a message that does not fit its row: %v", err)
	}
}

func TestRowsAreReadByOrganization(t *testing.T) {
	table, org, other := dynamotest.NewTable(t), value.NewID(), value.NewID()
	now := value.TimeOf(time.Now())
	want := map[value.ID]*webhook.Delivery{}
	var ids []value.ID
	for range 20 {
		r := createRow(t, table, makeRow(org, makeEndpoint(org, value.NewID()), "", now))
		want[r.ID] = r
		ids = append(ids, r.ID)
	}
	foreign := createRow(t, table, makeRow(other, makeEndpoint(other, value.NewID()), "", now))
	got, err := table.Deliveries(t.Context(), org, append(ids, foreign.ID, value.NewID()))
	if err != nil || cmp.Diff(got, want) != "" {
		t.Errorf("Rows: %v\n%s", err, cmp.Diff(got, want))
	}
	all := map[value.ID]*webhook.Delivery{}
	if err := ops.EachDelivery(t.Context(), table, org, func(r *webhook.Delivery) error {
		all[r.ID] = r
		return nil
	}); err != nil || cmp.Diff(all, want) != "" {
		t.Errorf("AllRows: %v\n%s", err, cmp.Diff(all, want))
	}
}

func TestDueMarksComeInTheOrderOfTime(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	now := value.TimeOf(time.Now())
	for i := range 40 {
		r := makeRow(org, makeEndpoint(org, value.NewID()), "", now)
		due := now.Add(time.Duration(40-i) * time.Second)
		r.DueAt, r.NextAttemptAt = &due, &due
		createRow(t, table, r)
	}
	var before, after int
	for shard := range dynamo.Shards {
		due, err := table.Due(t.Context(), shard, "", now.Add(21*time.Second), 100)
		must(t, err)
		for i := 1; i < len(due); i++ {
			if due[i-1].Mark > due[i].Mark {
				t.Errorf("shard %d: %s stands before %s", shard, due[i-1].Mark, due[i].Mark)
			}
		}
		before += len(due)
		all, err := table.Due(t.Context(), shard, "", now.Add(time.Hour), 100)
		must(t, err)
		after += len(all)
		if len(all) > 1 {
			first, err := table.Due(t.Context(), shard, "", now.Add(time.Hour), 1)
			if err != nil || len(first) != 1 || first[0] != all[0] {
				t.Errorf("shard %d, limit 1: %+v, %v", shard, first, err)
			}
			rest, err := table.Due(t.Context(), shard, all[0].Mark, now.Add(time.Hour), 100)
			if err != nil || cmp.Diff(rest, all[1:]) != "" {
				t.Errorf("shard %d, behind the first: %+v, %v", shard, rest, err)
			}
		}
	}
	if before != 20 || after != 40 {
		t.Errorf("%d marks before the time and %d in all, want 20 and 40", before, after)
	}
}

func TestDueMarkMovesOnce(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	now := value.TimeOf(time.Now())
	r := makeRow(org, makeEndpoint(org, value.NewID()), "", now)
	r.DueAt = &now
	createRow(t, table, r)
	d := findDue(t, table, now+1)
	for _, want := range []bool{true, false} {
		moved, got, err := table.Postpone(t.Context(), d, now.Add(webhook.Lease))
		if err != nil || (moved != nil) != want || want && cmp.Diff(got, r) != "" {
			t.Errorf("Postpone: %+v, %v; want it moved %t\n%s", moved, err, want, cmp.Diff(got, r))
		}
		if moved != nil && *moved != findDue(t, table, now.Add(webhook.Lease)+1) {
			t.Errorf("Postpone: %+v, which is not what stands", moved)
		}
	}
	moved := findDue(t, table, now.Add(webhook.Lease)+1)
	if _, err := table.PutDelivery(t.Context(), r, r.Cancel(now)); err != nil {
		t.Fatal(err)
	}
	if still, _, err := table.Postpone(t.Context(), moved, now); still != nil || err != nil {
		t.Errorf("Postpone of a mark that is gone: %+v, %v", still, err)
	}
}

func findDue(t *testing.T, table *dynamo.Table, before value.Time) webhook.Due {
	t.Helper()
	for shard := range dynamo.Shards {
		due, err := table.Due(t.Context(), shard, "", before, 10)
		must(t, err)
		if len(due) > 0 {
			return due[0]
		}
	}
	t.Fatal("no due mark")
	return webhook.Due{}
}

// Five rows each have the same time. A page ends among them, or holds more rows of
// one key than that key's share.
func TestUnsentRowsAreReadFromTheOldest(t *testing.T) {
	for name, wanted := range map[string]func(value.ID) bool{
		"over all keys": func(value.ID) bool { return true },
		"under one key": func(id value.ID) bool {
			h := fnv.New32a()
			h.Write(id[:])
			return h.Sum32()%16 == 7
		},
	} {
		t.Run(name, func(t *testing.T) {
			table, org := dynamotest.NewTable(t), value.NewID()
			e, other := makeEndpoint(org, value.NewID()), makeEndpoint(org, value.NewID())
			now := value.TimeOf(time.Now())
			var rows []*webhook.Delivery
			for len(rows) < 60 {
				if r := makeRow(org, e, webhook.HeldPaused, now+value.Time(len(rows)/5)); wanted(r.ID) {
					rows = append(rows, r)
				}
			}
			slices.SortFunc(rows, func(a, b *webhook.Delivery) int {
				return strings.Compare(a.CreatedAt.String()+a.ID.String(), b.CreatedAt.String()+b.ID.String())
			})
			var want, held []value.ID
			for i, r := range rows {
				switch i % 3 {
				case 0:
					r.Status, r.HeldReason = webhook.DeliveryFailed, ""
				case 1:
					r.HeldReason = webhook.HeldCircuitOpen
					held = append(held, r.ID)
				}
				if r.CreatedAt >= now+2 && r.CreatedAt < now+11 {
					want = append(want, r.ID)
				}
			}
			test := makeRow(org, e, webhook.HeldPaused, now+3)
			test.Status, test.HeldReason, test.Test = webhook.DeliveryFailed, "", true
			rows = append(rows, test, makeRow(org, e, "", now+3),
				makeRow(org, other, webhook.HeldPaused, now+3), makeRow(org, other, webhook.HeldCircuitOpen, now+3))
			if _, _, err := table.CreateDeliveries(t.Context(), rows); err != nil {
				t.Fatal(err)
			}
			for _, limit := range []int{1, 7, 19, 40, 100} {
				if got := walk(t, func(cursor string) ([]webhook.UnsentDelivery, error) {
					return table.Unsent(t.Context(), org, e.ID, now+2, now+11, cursor, limit)
				}, limit); cmp.Diff(got, want) != "" {
					t.Errorf("Unsent, %d at a time: %s", limit, cmp.Diff(got, want))
				}
				if got := walk(t, func(cursor string) ([]webhook.UnsentDelivery, error) {
					return table.Held(t.Context(), org, e.ID, cursor, limit)
				}, limit); cmp.Diff(got, held) != "" {
					t.Errorf("Held, %d at a time: %s", limit, cmp.Diff(got, held))
				}
			}
			if page, err := table.Unsent(t.Context(), value.NewID(), e.ID, now, now+100, "", 4); len(page) > 0 || err != nil {
				t.Errorf("another organization reads %+v, %v", page, err)
			}
			if page, err := table.Held(t.Context(), value.NewID(), e.ID, "", 4); len(page) > 0 || err != nil {
				t.Errorf("another organization reads what is held: %+v, %v", page, err)
			}
		})
	}
}

// walk reads page after page to the end, which is the first that is not full.
func walk(t *testing.T, page func(cursor string) ([]webhook.UnsentDelivery, error), limit int) (found []value.ID) {
	t.Helper()
	for cursor := ""; ; {
		rows, err := page(cursor)
		if err != nil || len(rows) > limit {
			t.Fatalf("%d rows, %v; want at most %d", len(rows), err, limit)
		}
		for _, u := range rows {
			found, cursor = append(found, u.DeliveryID), u.Cursor
		}
		if len(rows) < limit {
			return found
		}
	}
}

// keyRate stands for the 1,000 write units that a partition key takes in a second.
const keyRate = 50

// oneSecond is a table that refuses what exceeds the rate of a key of unsent rows
// within the second of a test.
type oneSecond struct {
	mu    sync.Mutex
	marks map[string]int // by GSI1PK
}

var unsentKey = regexp.MustCompile(`"(?:HELD|UNSENT)#[^"]*"`)

func (o *oneSecond) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range unsentKey.FindAll(body, -1) {
		if o.marks[string(key)]++; o.marks[string(key)] > keyRate {
			refusal := io.NopCloser(strings.NewReader(`{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException"}`))
			return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: refusal, Request: r}, nil
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(r)
}

func TestAnEndpointMayHoldMoreInASecondThanAKeyTakes(t *testing.T) {
	for _, reason := range []webhook.HeldReason{webhook.HeldCircuitOpen, webhook.HeldPaused} {
		t.Run(string(reason), func(t *testing.T) {
			client, name := dynamotest.Client(t)
			second := &oneSecond{marks: map[string]int{}}
			table := dynamo.New(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
				o.HTTPClient, o.Retryer = second, promptRetryer()
			}), name, time.Now)
			org, now := value.NewID(), value.TimeOf(time.Now())
			e := makeEndpoint(org, value.NewID())
			rows := make([]*webhook.Delivery, 3*keyRate)
			for i := range rows {
				rows[i] = makeRow(org, e, reason, now)
			}
			_, _, err := table.CreateDeliveries(t.Context(), rows)
			if err != nil || len(second.marks) == 0 {
				t.Errorf("%d rows under %d keys: %v", len(rows), len(second.marks), err)
			}
		})
	}
}

// A row leaves its place when it is sent, and takes the other when another
// reason holds it.
func TestARowIsUnsentInOnePlace(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	e, now := makeEndpoint(org, value.NewID()), value.TimeOf(time.Now())
	r := createRow(t, table, makeRow(org, e, "", now))
	for _, step := range []struct {
		next         func(*webhook.Delivery) *webhook.Delivery
		unsent, held int
	}{
		{func(r *webhook.Delivery) *webhook.Delivery { return r.Hold(webhook.HeldCircuitOpen, now) }, 1, 1},
		{func(r *webhook.Delivery) *webhook.Delivery { return r.ResumeAsProbe(now, now) }, 0, 0},
		{func(r *webhook.Delivery) *webhook.Delivery { return r.Hold(webhook.HeldCircuitOpen, now) }, 1, 1},
		{func(r *webhook.Delivery) *webhook.Delivery { return r.Hold(webhook.HeldPaused, now) }, 1, 0},
		{func(r *webhook.Delivery) *webhook.Delivery { return r.Resume(now) }, 0, 0},
		{func(r *webhook.Delivery) *webhook.Delivery { return r.Cancel(now) }, 0, 0},
	} {
		next := step.next(r)
		if _, err := table.PutDelivery(t.Context(), r, next); err != nil {
			t.Fatal(err)
		}
		unsent, err := table.Unsent(t.Context(), org, e.ID, now, now+1, "", 10)
		held, heldErr := table.Held(t.Context(), org, e.ID, "", 10)
		if err != nil || heldErr != nil || len(unsent) != step.unsent || len(held) != step.held {
			t.Errorf("%s %s: %d unsent, %d held, %v, %v; want %d and %d",
				next.Status, next.HeldReason, len(unsent), len(held), err, heldErr, step.unsent, step.held)
		}
		r = next
	}
}

func makeRecovery(e *webhook.Endpoint) *webhook.Recovery {
	now := value.TimeOf(time.Now())
	return &webhook.Recovery{
		ID: value.NewID(), EndpointID: e.ID, OrganizationID: e.OrganizationID, Status: webhook.RecoveryRunning,
		Since: hookNow, Until: now, CreatedAt: now, UpdatedAt: now,
	}
}

func TestOneRecoveryOfAnEndpointRunsAtATime(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	e := newEndpoint(t, table, org, newApplication(t, table, org))
	first, second := makeRecovery(e), makeRecovery(e)
	must(t, table.CreateRecovery(t.Context(), first, first.CreatedAt))
	if err := table.CreateRecovery(t.Context(), second, first.CreatedAt); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), first.ID.String()+" of the endpoint runs") {
		t.Errorf("a second recovery: %v, want a conflict that names the first", err)
	}
	step := first.Advance(3, 2, "cursor", first.CreatedAt)
	must(t, table.PutRecovery(t.Context(), first, step, first.CreatedAt))
	if err := table.PutRecovery(t.Context(), first, step.Advance(1, 1, "x", step.UpdatedAt), first.CreatedAt); !errors.Is(err, fault.ErrChanged) {
		t.Errorf("an outdated step: %v, want ErrChanged", err)
	}
	if d := findDue(t, table, first.CreatedAt+1); d.Kind != webhook.DueRecovery || d.ID != first.ID || d.EndpointID != e.ID {
		t.Errorf("due: %+v", d)
	}
	done := step.End(webhook.RecoveryCompleted, step.UpdatedAt)
	must(t, table.PutRecovery(t.Context(), step, done, 0))
	got, err := table.Recovery(t.Context(), org, e.ID, first.ID)
	if err != nil || cmp.Diff(got, done) != "" {
		t.Errorf("Recovery: %v\n%s", err, cmp.Diff(got, done))
	}
	if got, err := table.Recovery(t.Context(), value.NewID(), e.ID, first.ID); got != nil || err != nil {
		t.Errorf("another organization reads %+v, %v", got, err)
	}
	if due := allDue(t, table); len(due) > 0 {
		t.Errorf("due after the end: %+v", due)
	}
	if err := table.CreateRecovery(t.Context(), second, first.CreatedAt); err != nil {
		t.Errorf("after the first ended: %v", err)
	}
}

func TestTheRecoveryOfADeletedEndpointEnds(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	e := newEndpoint(t, table, org, newApplication(t, table, org))
	running := makeRecovery(e)
	must(t, table.CreateRecovery(t.Context(), running, running.CreatedAt))
	if _, err := table.DeleteEndpoint(t.Context(), org, e.ID, always); err != nil {
		t.Fatal(err)
	}
	if err := table.PutRecovery(t.Context(), running, running.End(webhook.RecoveryCancelled, running.CreatedAt), 0); err != nil {
		t.Errorf("ending it: %v", err)
	}
	if err := table.CreateRecovery(t.Context(), makeRecovery(e), running.CreatedAt); !fault.Is(err, fault.NotFound) {
		t.Errorf("another one: %v, want that there is no endpoint", err)
	}
}
