package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/ingest"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

var start = time.Date(2026, 11, 21, 6, 35, 41, 242_000_000, time.UTC)

// rejects collects refusals, and by message their fields.
type rejects struct {
	mu   sync.Mutex
	got  []commerce.Refusal
	from map[string][]string
	fail bool
}

func (r *rejects) Reject(_ context.Context, source string, refusals []commerce.Refusal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail {
		return errors.New("the queue is away")
	}
	r.got = append(r.got, refusals...)
	if r.from == nil {
		r.from = map[string][]string{}
	}
	for _, f := range refusals {
		r.from[source] = append(r.from[source], f.Field)
	}
	return nil
}

// faulty fails chosen writes as a throttled table does, or does not answer
// writes of single records.
type faulty struct {
	*dynamo.Table
	mu    sync.Mutex
	every int
	n     int
	mute  bool
}

func (f *faulty) throttle() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	if f.every > 0 && f.n%f.every == 0 {
		return fault.Busy(errors.New("throttled"))
	}
	return nil
}

func (f *faulty) PutRecord(ctx context.Context, previous, next *commerce.Stored) error {
	if f.mute {
		<-ctx.Done()
		return fault.Busy(ctx.Err())
	}
	if err := f.throttle(); err != nil {
		return err
	}
	return f.Table.PutRecord(ctx, previous, next)
}

func (f *faulty) CreateRecords(ctx context.Context, records []*commerce.Stored) []error {
	errs := make([]error, len(records))
	var sent []*commerce.Stored
	var at []int
	for i, s := range records {
		if errs[i] = f.throttle(); errs[i] == nil {
			sent, at = append(sent, s), append(at, i)
		}
	}
	for i, err := range f.Table.CreateRecords(ctx, sent) {
		errs[at[i]] = err
	}
	return errs
}

type harness struct {
	table    *faulty
	rejects  *rejects
	imports  *imports
	ingester *ingest.Ingester
	org      value.ID
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	f := &harness{table: &faulty{Table: dynamotest.NewTable(t)}, rejects: &rejects{}, imports: &imports{}, org: value.NewID()}
	f.ingester = ingest.New(f.table, f.rejects, f.imports, func() time.Time { return start }, slog.New(slog.DiscardHandler))
	return f
}

// handle sends bodies as one batch and returns the ids of failed messages.
func (f *harness) handle(t *testing.T, bodies ...string) []string {
	t.Helper()
	var batch events.SQSEvent
	for i, body := range bodies {
		batch.Records = append(batch.Records, events.SQSMessage{MessageId: fmt.Sprint("m", i), Body: body})
	}
	return f.invoke(t, batch.Records...)
}

// apply sends bodies as one batch, of which no message may come again.
func (f *harness) apply(t *testing.T, bodies ...string) {
	t.Helper()
	if failed := f.handle(t, bodies...); failed != nil {
		t.Fatalf("failed messages: got %v, want none", failed)
	}
}

func (f *harness) product(t *testing.T, id value.ID) *commerce.Product {
	t.Helper()
	stored, err := f.table.Record(t.Context(), f.org, commerce.KindProduct, id)
	if err != nil {
		t.Fatal(err)
	}
	if stored == nil {
		return nil
	}
	record, err := stored.Record()
	if err != nil {
		t.Fatal(err)
	}
	return record.(*commerce.Product)
}

func (f *harness) one(id value.ID, name string, version int) string {
	return fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","version":%d,"record":{"id":%q,"name":%q}}`, f.org, version, id, name)
}

func TestABatchIsAnsweredForBeforeItsTimeIsUp(t *testing.T) {
	f, stored := newHarness(t), value.NewID()
	f.apply(t, f.one(stored, "first", 1))
	f.table.mute = true
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	response, err := f.ingester.Handle(ctx, events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "changed", Body: f.one(stored, "second", 2)},
		{MessageId: "created", Body: f.one(value.NewID(), "new", 1)},
		{MessageId: "created too", Body: f.one(value.NewID(), "new", 1)},
	}})
	if err != nil || ctx.Err() != nil || len(response.BatchItemFailures) != 1 || response.BatchItemFailures[0].ItemIdentifier != "changed" {
		t.Errorf("got %+v, %v, the context's end %v; want an answer in time that only the change failed", response, err, ctx.Err())
	}
	if !slices.Equal(f.imports.postponed, []string{"changed"}) {
		t.Errorf("postponed: %v, want what failed", f.imports.postponed)
	}
}

func TestARefusedRecordDoesNotHoldUpItsNeighbours(t *testing.T) {
	f := newHarness(t)
	good, bad := value.NewID(), value.NewID()
	body := fmt.Sprintf(`{"organizationId":%q,"records":[
		{"kind":"product","op":"put","record":{"id":%q,"name":"x","sellingPrice":1.00001}},
		{"kind":"product","op":"put","record":{"id":%q,"name":"good"}},
		{"kind":"planet","op":"put","record":{"id":%q,"name":"x"}},
		{"kind":"product","op":"put","record":{"name":"x"}}]}`, f.org, bad, good, bad)
	f.apply(t, body, "no JSON")
	if f.product(t, good) == nil || f.product(t, bad) != nil {
		t.Errorf("good stored %v, bad stored %v; want true, false", f.product(t, good) != nil, f.product(t, bad) != nil)
	}
	if len(f.rejects.got) != 4 {
		t.Fatalf("refusals: got %d %+v, want 4", len(f.rejects.got), f.rejects.got)
	}
	for _, r := range f.rejects.got {
		if r.Reason == "" || r.Message == "" {
			t.Errorf("refusal %+v: want a reason and a message", r)
		}
		if r.Field == "record.sellingPrice" {
			var single map[string]any
			if err := json.Unmarshal(r.Body, &single); err != nil || single["organizationId"] != f.org.String() {
				t.Errorf("body of the refusal: got %s, %v; want a message of one record", r.Body, err)
			}
		}
	}
}

func TestAMessageThatComesTwiceChangesNothing(t *testing.T) {
	f, id := newHarness(t), value.NewID()
	body := f.one(id, "once", 1)
	f.handle(t, body)
	first := f.product(t, id)
	writes := f.table.n
	f.handle(t, body, body)
	if again := f.product(t, id); again.UpdatedAt != first.UpdatedAt || f.table.n != writes {
		t.Errorf("updatedAt %s, then %s, with %d more writes; want no change", first.UpdatedAt, again.UpdatedAt, f.table.n-writes)
	}
}

func TestConcurrentWritersOfOneRecordEndWithTheHighestVersion(t *testing.T) {
	f, id := newHarness(t), value.NewID()
	var wg sync.WaitGroup
	for version := range 12 {
		wg.Go(func() {
			for attempt := range 20 {
				if failed := f.handle(t, f.one(id, fmt.Sprint("v", version), version)); failed == nil {
					return
				} else if attempt == 19 {
					t.Errorf("version %d: %v", version, failed)
				}
			}
		})
	}
	wg.Wait()
	if got := f.product(t, id); got == nil || got.Name != "v11" {
		t.Errorf("got %+v, want v11", got)
	}
}

func TestAThrottledTableFailsTheMessageAndARetryCompletesIt(t *testing.T) {
	f := newHarness(t)
	f.table.every = 3
	var records []string
	ids := make([]value.ID, 20)
	for i := range ids {
		ids[i] = value.NewID()
		records = append(records, fmt.Sprintf(`{"kind":"product","op":"put","record":{"id":%q,"name":"p"}}`, ids[i]))
	}
	records = append(records, `{"kind":"product","op":"put","record":{"id":1}}`)
	body := fmt.Sprintf(`{"organizationId":%q,"records":[%s]}`, f.org, strings.Join(records, ","))
	if failed := f.handle(t, body); len(failed) != 1 {
		t.Fatalf("failed messages of a throttled batch: got %v, want the one", failed)
	}
	if len(f.rejects.got) != 0 {
		t.Errorf("refusals before the message is through: got %d, want none", len(f.rejects.got))
	}
	f.table.every = 0
	f.apply(t, body)
	for _, id := range ids {
		if f.product(t, id) == nil {
			t.Errorf("product %s is not stored", id)
		}
	}
	if len(f.rejects.got) != 1 {
		t.Errorf("refusals: got %d, want 1", len(f.rejects.got))
	}
}
