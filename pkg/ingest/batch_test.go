package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/ingest"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// watched counts the calls and fails what concerns the broken records.
type watched struct {
	*dynamo.Table
	mu      sync.Mutex
	reads   int
	creates int
	puts    int
	broken  map[value.ID]bool
	unread  map[value.ID]bool
}

var errBroken = fault.Busy(errors.New("the table is away"))

func (w *watched) count(n *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n++
}

func (w *watched) ReadRecords(ctx context.Context, refs []dynamo.RecordRef) []dynamo.Found {
	w.count(&w.reads)
	found := w.Table.ReadRecords(ctx, refs)
	for i, r := range refs {
		if w.unread[r.ID] {
			found[i] = dynamo.Found{Err: errBroken}
		}
	}
	return found
}

func (w *watched) CreateRecords(ctx context.Context, records []*commerce.Stored) []error {
	w.count(&w.creates)
	errs := w.Table.CreateRecords(ctx, slices.DeleteFunc(slices.Clone(records), func(s *commerce.Stored) bool { return w.broken[s.ID] }))
	for i, s := range records {
		if w.broken[s.ID] {
			errs = slices.Insert(errs, i, error(errBroken))
		}
	}
	return errs
}

func (w *watched) PutRecord(ctx context.Context, previous, next *commerce.Stored) error {
	w.count(&w.puts)
	if w.broken[next.ID] {
		return errBroken
	}
	return w.Table.PutRecord(ctx, previous, next)
}

// watch lets the fixture's ingester write through a watched table.
func (f *harness) watch() *watched {
	w := &watched{Table: f.table.Table, broken: map[value.ID]bool{}, unread: map[value.ID]bool{}}
	f.ingester = ingest.New(w, f.rejects, f.imports, func() time.Time { return start }, slog.New(slog.DiscardHandler))
	return w
}

func TestNewRecordsOfABatchTakeOneReadAndOneCreation(t *testing.T) {
	f := newHarness(t)
	w := f.watch()
	var bodies []string
	ids := make([]value.ID, 10)
	for i := range ids {
		ids[i] = value.NewID()
		bodies = append(bodies, f.one(ids[i], fmt.Sprint("p", i), 1))
	}
	f.apply(t, bodies...)
	if w.reads != 1 || w.creates != 1 || w.puts != 0 {
		t.Errorf("%d reads, %d creations, %d puts; want 1, 1, 0", w.reads, w.creates, w.puts)
	}
	for i, id := range ids {
		if got := f.product(t, id); got == nil || got.Name != fmt.Sprint("p", i) {
			t.Errorf("product %d: got %+v", i, got)
		}
	}
}

func TestOrganizationsOfOneBatchStayApart(t *testing.T) {
	f, other, id := newHarness(t), value.NewID(), value.NewID()
	w := f.watch()
	bodies := func(version int) []string {
		mine := f.one(id, fmt.Sprint("mine ", version), version)
		return []string{mine, strings.NewReplacer(f.org.String(), other.String(), "mine", "theirs").Replace(mine)}
	}
	for version := 1; version <= 2; version++ { // created, then replaced
		f.apply(t, bodies(version)...)
		found := w.Table.ReadRecords(t.Context(), []dynamo.RecordRef{{OrganizationID: f.org, Kind: commerce.KindProduct, ID: id}, {OrganizationID: other, Kind: commerce.KindProduct, ID: id}})
		for i, who := range []string{"mine", "theirs"} {
			want := fmt.Sprintf(`"name":"%s %d"`, who, version)
			if s := found[i].Stored; s == nil || !strings.Contains(string(s.Doc), want) || s.OrganizationID != []value.ID{f.org, other}[i] {
				t.Errorf("version %d: got %+v, %v; want %s", version, s, found[i].Err, want)
			}
		}
	}
	// One that names its organization otherwise than its message is refused.
	foreign := fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","version":3,"record":{"id":%q,"organizationId":%q,"name":"foreign"}}`, f.org, id, other)
	f.handle(t, foreign, bodies(4)[1])
	if want := map[string][]string{"m0": {"record.organizationId"}}; cmp.Diff(f.rejects.from, want) != "" || f.product(t, id).Name != "mine 2" {
		t.Errorf("refused %v, stored %q; want %v, and mine as it was", f.rejects.from, f.product(t, id).Name, want)
	}
}

func TestChangesToARecordAreMadeInTheOrderOfTheBatch(t *testing.T) {
	f, id := newHarness(t), value.NewID()
	put := func(name string) string {
		return fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","record":{"id":%q,"name":%q}}`, f.org, id, name)
	}
	gone := fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"delete","record":{"id":%q}}`, f.org, id)
	filler := f.one(value.NewID(), "another", 1)
	for _, row := range []struct {
		bodies []string
		want   string // "" for none
		after  value.Time
	}{
		{[]string{put("a"), filler, put("b"), gone, put("c")}, "c", 3},
		{[]string{put("d"), put("e"), gone}, "", 6},
		{[]string{put("f"), gone, put("g"), filler}, "g", 9},
	} {
		f.apply(t, row.bodies...)
		found := f.table.ReadRecords(t.Context(), []dynamo.RecordRef{{OrganizationID: f.org, Kind: commerce.KindProduct, ID: id}})[0]
		if want := value.TimeOf(start) + row.after; found.Stored == nil || found.Stored.Revision != want {
			t.Fatalf("got %+v, want the revision %s: every change is one", found.Stored, want)
		}
		if p := f.product(t, id); (p == nil) != (row.want == "") || p != nil && p.Name != row.want {
			t.Errorf("after %v: got %+v, want %q", row.bodies, p, row.want)
		}
	}
}

// Of messages about the same records only those come again that have a change
// which was not made.
func TestFaultOfARecordFailsOnlyItsMessages(t *testing.T) {
	for _, stored := range []bool{false, true} {
		f := newHarness(t)
		w := f.watch()
		a, b, c := value.NewID(), value.NewID(), value.NewID()
		if stored {
			f.handle(t, f.one(a, "was", 1), f.one(b, "was", 1), f.one(c, "was", 1))
		}
		w.broken[b], w.unread[c] = true, true
		both := fmt.Sprintf(`{"organizationId":%q,"records":[
			{"kind":"product","op":"put","version":3,"record":{"id":%q,"name":"with b"}},
			{"kind":"product","op":"put","version":3,"record":{"id":%q,"name":"with a"}},
			{"kind":"product","op":"put","version":3,"record":{"id":%q,"name":1}}]}`, f.org, a, b, a)
		bodies := []string{f.one(a, "a", 2), f.one(b, "b", 2), both, f.one(c, "c", 2), "no JSON", f.one(value.NewID(), "d", 2)}
		if failed, want := f.handle(t, bodies...), []string{"m1", "m2", "m3"}; !slices.Equal(failed, want) {
			t.Errorf("stored before: %t: failed %v, want %v", stored, failed, want)
		}
		if got := f.product(t, a); got == nil || got.Name != "with b" {
			t.Errorf("stored before: %t: got %+v, want the healthy part of the message stored", stored, got)
		}
		if want := map[string][]string{"m4": {""}}; cmp.Diff(f.rejects.from, want) != "" {
			t.Errorf("refused %v, want %v: the other message is not through", f.rejects.from, want)
		}
		clear(w.broken)
		clear(w.unread)
		f.apply(t, bodies...)
		if got := f.product(t, b); got == nil || got.Name != "with a" {
			t.Errorf("got %+v, want the last put", got)
		}
		if want := map[string][]string{"m2": {"record.name"}, "m4": {"", ""}}; cmp.Diff(f.rejects.from, want) != "" {
			t.Errorf("refused %v, want %v", f.rejects.from, want)
		}
	}
}

// Whatever fails on the way to the table, at the end there is of each record
// what its highest version says, and each revision was made once.
func TestBatchesAreAppliedWhateverFails(t *testing.T) {
	client, name := dynamotest.Client(t)
	proxy, err := faults.New(*client.Options().BaseEndpoint, faults.Config{
		Rates:      faults.Every(0.15, faults.LostRequest, faults.LostAnswer, faults.FalseError, faults.Throttle, faults.InternalError, faults.Unprocessed),
		Operations: map[string]faults.Rates{"BatchExecuteStatement": faults.Every(0.4, faults.LostAnswer, faults.Unprocessed)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := proxy.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() })
	endpoint := proxy.Endpoint()
	table := dynamo.New(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.BaseEndpoint = &endpoint
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
	}), name, time.Now)
	f := &harness{table: &faulty{Table: table}, rejects: &rejects{}, imports: &imports{}, org: value.NewID()}
	f.ingester = ingest.New(table, f.rejects, f.imports, time.Now, slog.New(slog.DiscardHandler))

	const versions = 4
	ids := make([]value.ID, 40)
	var left []events.SQSMessage
	for i := range ids {
		ids[i] = value.NewID()
		for version := range versions {
			body := f.one(ids[i], fmt.Sprint("v", version), version)
			left = append(left, events.SQSMessage{MessageId: fmt.Sprint(i, "-", version), Body: body})
		}
	}
	rand.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	for len(left) > 0 {
		var again []events.SQSMessage
		var mu sync.Mutex
		var wg sync.WaitGroup
		for batch := range slices.Chunk(left, 10) {
			wg.Go(func() {
				stay := f.invoke(t, batch...)
				mu.Lock()
				defer mu.Unlock()
				for _, m := range batch {
					if slices.Contains(stay, m.MessageId) {
						again = append(again, m)
					}
				}
			})
		}
		wg.Wait()
		left = again
	}
	proxy.Off()
	for _, id := range ids {
		if got := f.product(t, id); got == nil || got.Name != fmt.Sprint("v", versions-1) {
			t.Errorf("got %+v, want v%d", got, versions-1)
		}
	}
	if len(f.rejects.got) > 0 {
		t.Errorf("refused %v, want none: a write whose answer was lost is known", f.rejects.from)
	}
	if c := proxy.Counts(); c.Of(faults.Unprocessed) == 0 || c.Of(faults.LostAnswer) == 0 {
		t.Errorf("no statement failed on its own, or no answer was lost:\n%s", c)
	}
}
