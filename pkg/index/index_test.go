package index_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
	"github.com/commerce-integration/service/pkg/index/indexer"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

var schema = columnar.MustSchema("things",
	columnar.Column{Name: "size", Type: columnar.Number, Sort: true},
	columnar.Column{Name: "createdAt", Type: columnar.Time, Sort: true},
	columnar.Column{Name: "name", Type: columnar.Text, Search: true, Sort: true},
)

var (
	size      = schema.Col("size")
	createdAt = schema.Col("createdAt")
	name      = schema.Col("name")
)

// thing is what the table of this test holds: a size at a revision, since a
// month.
type thing struct {
	revision int64
	size     int64
	month    int
	deleted  bool
}

// harness is a table of things with its stream and its clock.
type harness struct {
	mu     sync.Mutex
	now    time.Time
	things map[value.ID]thing
	stream []events.DynamoDBEventRecord
	starts []string // lists of which a job was started

	storage storage
	client  *dynamodb.Client // of the table; nil in memory, as is table
	table   *dynamo.Table
	org     value.ID
	list    *index.List
}

// newHarness keeps the index in the table.
func newHarness(t *testing.T) *harness {
	t.Helper()
	w := newMemoryHarness()
	client, table := dynamotest.Client(t)
	w.client, w.table = client, dynamo.New(client, table, w.clock)
	w.storage = w.table
	return w
}

// newMemoryHarness keeps the index in memory.
func newMemoryHarness() *harness {
	w := &harness{now: time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC), things: map[value.ID]thing{}, org: value.NewID()}
	w.storage = newMemory(w.clock)
	w.list = &index.List{Name: "things", Schema: schema, By: index.Monthly, On: createdAt, Shards: 2, Read: w.read}
	return w
}

// inBoth runs a test with the index in memory and in the table.
func inBoth(t *testing.T, test func(*testing.T, *harness)) {
	t.Run("memory", func(t *testing.T) { test(t, newMemoryHarness()) })
	t.Run("table", func(t *testing.T) { test(t, newHarness(t)) })
}

// read gives the things of a shard, one at a time.
func (w *harness) read(_ context.Context, _ value.ID, shard int, after string) ([]columnar.Document, string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []string
	for id := range w.things {
		if int(id[15])%2 == shard && id.String() > after {
			ids = append(ids, id.String())
		}
	}
	if len(ids) == 0 {
		return nil, "", nil
	}
	slices.Sort(ids)
	next := ids[0]
	if len(ids) == 1 {
		next = ""
	}
	id := value.MustID(ids[0])
	if w.things[id].deleted {
		return nil, next, nil
	}
	return []columnar.Document{document(id, w.things[id])}, next, nil
}

// get gives the things with the ids.
func (w *harness) get(_ context.Context, _ value.ID, ids [][16]byte, _ bool) (found []columnar.Document, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if th, ok := w.things[id]; ok && !th.deleted {
			found = append(found, document(id, th))
		}
	}
	return found, nil
}

// Send notes that a job was started.
func (w *harness) Send(_ context.Context, _ value.ID, list string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starts = append(w.starts, list)
	return nil
}

func (w *harness) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *harness) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// put writes a thing and its stream record, whose images say what was and is.
func (w *harness) put(id value.ID, th thing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old, had := w.things[id]
	th.revision = max(w.now.UnixMilli(), old.revision+1)
	w.things[id] = th
	change := events.DynamoDBStreamRecord{SequenceNumber: strconv.Itoa(len(w.stream)), NewImage: image(id, th)}
	if had {
		change.OldImage = image(id, old)
	}
	w.stream = append(w.stream, events.DynamoDBEventRecord{Change: change})
}

func image(id value.ID, th thing) map[string]events.DynamoDBAttributeValue {
	number := func(n int64) events.DynamoDBAttributeValue {
		return events.NewNumberAttribute(strconv.FormatInt(n, 10))
	}
	return map[string]events.DynamoDBAttributeValue{
		"id": events.NewStringAttribute(id.String()), "size": number(th.size), "revision": number(th.revision),
		"month": number(int64(th.month)), "deleted": events.NewBooleanAttribute(th.deleted),
	}
}

func document(id value.ID, th thing) columnar.Document {
	b := schema.Build(id, 0).Number(size, th.size).Text(name, fmt.Sprint("thing ", th.size))
	b.Time(createdAt, time.Date(2026, time.Month(th.month), 3, 0, 0, 0, 0, time.UTC).UnixMilli()+th.size)
	return b.Document(th.revision, 0)
}

func (w *harness) decode(_ context.Context, r *events.DynamoDBEventRecord) ([]indexer.ListChange, error) {
	if r.Change.NewImage == nil {
		return nil, errors.New("no image")
	}
	id := value.MustID(r.Change.NewImage["id"].String())
	thingOf := func(image map[string]events.DynamoDBAttributeValue) *columnar.Document {
		if image == nil || image["deleted"].Boolean() {
			return nil
		}
		number := func(name string) int64 { n, _ := image[name].Integer(); return n }
		d := document(id, thing{number("revision"), number("size"), int(number("month")), false})
		return &d
	}
	revision, _ := r.Change.NewImage["revision"].Integer()
	return indexer.Changes(w.org, w.list, revision, thingOf(r.Change.OldImage), thingOf(r.Change.NewImage)), nil
}

type parked struct{ n int }

func (p *parked) Park(context.Context, string, events.DynamoDBEventRecord, error) error {
	p.n++
	return nil
}

func (w *harness) indexer(park indexer.Parker) *indexer.Indexer {
	return indexer.New(w.storage, w.decode, park, w, slog.New(slog.DiscardHandler))
}

func (w *harness) compactor() *compactor.Compactor {
	return compactor.New(w.storage, []*index.List{w.list}, w.clock, slog.New(slog.DiscardHandler))
}

func (w *harness) views() *views.Cache {
	return views.NewCache(w.storage, views.Config{Clock: w.clock, Start: w})
}

// ask asks for everything that a query holds for.
func (w *harness) ask(t *testing.T, v *views.Cache, q columnar.Query) []string {
	t.Helper()
	q.OrderBy, q.Limit = size, 1000
	result, err := v.Query(t.Context(), w.org, w.list, q, false)
	if err != nil {
		t.Fatal(err)
	}
	if result.Total != len(result.Hits) {
		t.Errorf("query %+v: total %d, %d hits", q, result.Total, len(result.Hits))
	}
	out := []string{}
	for _, hit := range result.Hits {
		out = append(out, fmt.Sprint(value.ID(hit.ID), "@", hit.Revision))
	}
	return out
}

// want is what a list of all live things gives.
func (w *harness) want() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []value.ID
	for id, th := range w.things {
		if !th.deleted {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b value.ID) int {
		return cmp.Or(cmp.Compare(w.things[a].size, w.things[b].size), bytes.Compare(a[:], b[:]))
	})
	out := []string{}
	for _, id := range ids {
		out = append(out, fmt.Sprint(id, "@", w.things[id].revision))
	}
	return out
}

func (w *harness) handle(t *testing.T, writer *indexer.Indexer, records []events.DynamoDBEventRecord) {
	t.Helper()
	response, err := writer.Handle(t.Context(), events.DynamoDBEvent{Records: records})
	if err != nil || len(response.BatchItemFailures) != 0 {
		t.Fatalf("handle %d records: got %v, %v", len(records), response, err)
	}
}

// maintain wants a job now and runs jobs until nothing is left to do.
func (w *harness) maintain(t *testing.T, m *compactor.Compactor) {
	t.Helper()
	if err := w.storage.RequestJob(t.Context(), w.org, w.list.Name, value.TimeOf(w.clock())); err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		var err error
		if more, err = m.Run(t.Context(), w.org, w.list.Name); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *harness) verify(t *testing.T) {
	t.Helper()
	differences, err := ops.Verify(t.Context(), w.storage, w.org, w.list, w.clock())
	if err != nil || len(differences) > 0 {
		t.Errorf("verify: got %v, %v; want no difference", differences, err)
	}
}

func TestAListReadsTheTailAtMostOnceASecond(t *testing.T) {
	inBoth(t, func(t *testing.T, w *harness) {
		cache, writer := w.views(), w.indexer(&parked{})
		if got := w.ask(t, cache, columnar.Query{}); len(got) != 0 {
			t.Fatalf("an empty table: got %v", got)
		}
		w.put(value.NewID(), thing{size: 1, month: 1})
		w.handle(t, writer, w.stream)
		if got := w.ask(t, cache, columnar.Query{}); len(got) != 0 {
			t.Errorf("within the second: got %v, want the view as it was", got)
		}
		w.advance(views.Freshness)
		if got := w.ask(t, cache, columnar.Query{}); len(got) != 1 {
			t.Errorf("after the second: got %v, want the new thing", got)
		}
	})
}

func TestAReplayBringsNothingBack(t *testing.T) {
	for name, later := range map[string]thing{
		"deleted":                {size: 1, month: 1, deleted: true},
		"moved to another month": {size: 1, month: 2},
	} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, w *harness) {
				writer, id := w.indexer(&parked{}), value.NewID()
				w.put(id, thing{size: 1, month: 1})
				w.put(id, later)
				w.handle(t, writer, w.stream)
				for _, between := range []func(){
					func() { w.maintain(t, w.compactor()) },
					func() { w.rebuild(t) },
					func() { w.advance(3 * time.Hour); w.maintain(t, w.compactor()) },
				} {
					between()
					w.handle(t, writer, w.stream[:1])
					if got, want := w.ask(t, w.views(), columnar.Query{}), w.want(); !slices.Equal(got, want) {
						t.Errorf("after the put was replayed: got %v, want %v", got, want)
					}
				}
				w.maintain(t, w.compactor())
				w.verify(t)
			})
		})
	}
}

func TestAPoisonRecordIsParkedAndTheRestGoesOn(t *testing.T) {
	inBoth(t, func(t *testing.T, w *harness) {
		park := &parked{}
		w.put(value.NewID(), thing{size: 1, month: 1})
		empty := events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{SequenceNumber: "bad"}}
		wrong := events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{SequenceNumber: "worse", NewImage: map[string]events.DynamoDBAttributeValue{
			"id": events.NewStringAttribute("no id"), // makes the decoder panic
		}}}
		w.handle(t, w.indexer(park), append([]events.DynamoDBEventRecord{empty, wrong}, w.stream...))
		if got := w.ask(t, w.views(), columnar.Query{}); len(got) != 1 || park.n != 2 {
			t.Errorf("listed %v, parked %d; want the sound one listed and the others parked", got, park.n)
		}
	})
}

func TestABusyTableFailsTheBatchFromItsFirstRecord(t *testing.T) {
	inBoth(t, func(t *testing.T, w *harness) {
		w.put(value.NewID(), thing{size: 1, month: 1})
		w.put(value.NewID(), thing{size: 1, month: 1})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		response, err := w.indexer(&parked{}).Handle(ctx, events.DynamoDBEvent{Records: w.stream})
		if err != nil || len(response.BatchItemFailures) != 1 || response.BatchItemFailures[0].ItemIdentifier != "0" {
			t.Errorf("got %+v, %v; want a failure of sequence 0", response, err)
		}
	})
}

func TestATableOutOfReachAnswersUnavailable(t *testing.T) {
	inBoth(t, func(t *testing.T, w *harness) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.views().Query(ctx, w.org, w.list, columnar.Query{Limit: 1}, false); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v, want a fault of kind Unavailable", err)
		}
	})
}

// A job may die at any call to the storage, and may have stalled before its last one for
// longer than replaced chunks keep their content.
func TestAJobThatDiesAtAnyCallLeavesTheIndexAsItWas(t *testing.T) {
	for name, stall := range map[string]time.Duration{"at once": 0, "after a stall": 3 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			w := newMemoryHarness()
			w.list.PartRows = 4
			writer, healthy := w.indexer(&parked{}), w.compactor()
			died := 0
			for calls := 0; died == calls; calls++ {
				for n := range 6 {
					w.put(value.NewID(), thing{size: int64(n), month: 1 + n%3})
				}
				w.handle(t, writer, w.stream)
				w.stream = nil
				w.advance(2 * time.Hour) // partitions are quiet, and leases over
				if err := w.storage.RequestJob(t.Context(), w.org, w.list.Name, value.TimeOf(w.clock())); err != nil {
					t.Fatal(err)
				}
				storage := w.storage.(*memory).dying(calls)
				storage.stall = func() { w.advance(stall) }
				dying := compactor.New(storage, []*index.List{w.list}, w.clock, slog.New(slog.DiscardHandler))
				if _, err := dying.Run(t.Context(), w.org, w.list.Name); err != nil {
					died++
				}
				if got, want := w.ask(t, w.views(), columnar.Query{}), w.want(); !slices.Equal(got, want) {
					t.Errorf("died after %d calls: got %v,\nwant %v", calls, got, want)
				}
				w.advance(2 * time.Hour)
				w.maintain(t, healthy)
				w.verify(t)
			}
			if died < 8 {
				t.Errorf("the job died at %d calls only, and cannot have written segments", died)
			}
		})
	}
}
