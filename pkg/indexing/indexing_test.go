package indexing_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/dynamo/dynamotest"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/indexing"
	"github.com/commerce-integration/service/pkg/value"
)

var schema = index.MustSchema("things", index.Column{Name: "size", Type: index.Number, Sort: true})

// thing is what the table of this test holds: a size at a revision.
type thing struct {
	revision int64
	size     int64
	deleted  bool
}

// world is a table of things with its stream and its clock.
type world struct {
	mu     sync.Mutex
	now    time.Time
	things map[value.ID]thing
	stream []events.DynamoDBEventRecord
	loads  int

	table *dynamo.Table
	org   value.ID
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{now: time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC), things: map[value.ID]thing{}, org: value.NewID()}
	client, name := dynamotest.Client(t)
	w.table = dynamo.New(client, name, w.clock)
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// put writes a thing and its stream record, which encodes it in its keys.
func (w *world) put(id value.ID, size int64, deleted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	revision := max(w.now.UnixMilli(), w.things[id].revision+1)
	w.things[id] = thing{revision, size, deleted}
	w.stream = append(w.stream, events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{
		SequenceNumber: strconv.Itoa(len(w.stream)),
		NewImage: map[string]events.DynamoDBAttributeValue{
			"id": events.NewStringAttribute(id.String()), "size": events.NewNumberAttribute(strconv.FormatInt(size, 10)),
			"revision": events.NewNumberAttribute(strconv.FormatInt(revision, 10)), "deleted": events.NewBooleanAttribute(deleted),
		},
	}})
}

func document(id value.ID, th thing) index.Document {
	if th.deleted {
		return schema.Tombstone(id, 0, th.revision, 0)
	}
	return schema.Build(id, 0).Number(schema.Col("size"), th.size).Document(th.revision, 0)
}

func (w *world) decode(r *events.DynamoDBEventRecord) ([]indexing.Entry, error) {
	image := r.Change.NewImage
	if image == nil {
		return nil, errors.New("no image")
	}
	id := value.MustID(image["id"].String())
	size, _ := image["size"].Integer()
	revision, _ := image["revision"].Integer()
	return []indexing.Entry{{OrganizationID: w.org, List: "things", Document: document(id, thing{revision, size, image["deleted"].Boolean()})}}, nil
}

func (w *world) list() *indexing.List {
	return &indexing.List{Name: "things", Schema: schema, Load: func(_ context.Context, _ value.ID, each func(index.Document)) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.loads++
		for id, th := range w.things {
			each(document(id, th))
		}
		return nil
	}}
}

type parked struct{ n int }

func (p *parked) Park(context.Context, string, events.DynamoDBEventRecord, error) error {
	p.n++
	return nil
}

func (w *world) writer(park indexing.Parker) *indexing.Writer {
	return indexing.NewWriter(w.table, w.decode, park, slog.New(slog.DiscardHandler))
}

func (w *world) views() *indexing.Views {
	return indexing.NewViews(w.table, indexing.Config{Clock: w.clock})
}

// sizes asks a view for everything, by size.
func (w *world) sizes(t *testing.T, v *indexing.Views, q index.Query) []string {
	t.Helper()
	view, err := v.View(t.Context(), w.org, w.list())
	if err != nil {
		t.Fatal(err)
	}
	q.OrderBy, q.Limit = schema.Col("size"), 1000
	out := []string{}
	for _, hit := range view.Query(q).Hits {
		out = append(out, fmt.Sprint(value.ID(hit.ID), "@", hit.Revision))
	}
	return out
}

func (w *world) handle(t *testing.T, writer *indexing.Writer, records []events.DynamoDBEventRecord) {
	t.Helper()
	response, err := writer.Handle(t.Context(), events.DynamoDBEvent{Records: records})
	if err != nil || response.BatchItemFailures != nil {
		t.Fatalf("handle %d records: got %v, %v", len(records), response, err)
	}
}

func TestAViewEqualsTheTableOnceTheStreamIsDrained(t *testing.T) {
	w, random := newWorld(t), rand.New(rand.NewPCG(1, 2))
	writer, warm := w.writer(&parked{}), w.views()
	ids := make([]value.ID, 12)
	for i := range ids {
		ids[i] = value.NewID()
	}
	indexed := 0
	for range 30 {
		for range random.IntN(4) {
			w.put(ids[random.IntN(len(ids))], random.Int64N(50), random.IntN(4) == 0)
		}
		if random.IntN(2) == 0 {
			w.sizes(t, warm, index.Query{})
		}
		from := max(0, indexed-random.IntN(4)) // a batch that comes again
		w.handle(t, writer, w.stream[from:])
		indexed = len(w.stream)
		w.advance(time.Duration(random.IntN(1500)) * time.Millisecond)
	}
	w.advance(indexing.Freshness)
	cold := w.sizes(t, w.views(), index.Query{})
	got := w.sizes(t, warm, index.Query{})
	live := 0
	for _, th := range w.things {
		if !th.deleted {
			live++
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(cold) || len(got) != live {
		t.Errorf("followed view %v,\nfresh view %v, %d live things; want all the same", got, cold, live)
	}
}

func TestAViewReadsTheLogAtMostOnceASecond(t *testing.T) {
	w := newWorld(t)
	views, writer := w.views(), w.writer(&parked{})
	if got := w.sizes(t, views, index.Query{}); len(got) != 0 {
		t.Fatalf("an empty table: got %v", got)
	}
	w.put(value.NewID(), 1, false)
	w.handle(t, writer, w.stream)
	if got := w.sizes(t, views, index.Query{}); len(got) != 0 {
		t.Errorf("within the second: got %v, want the view as it was", got)
	}
	w.advance(indexing.Freshness)
	if got := w.sizes(t, views, index.Query{}); len(got) != 1 {
		t.Errorf("after the second: got %v, want the new thing", got)
	}
	if w.loads != 1 {
		t.Errorf("the table was read %d times, want once", w.loads)
	}
}

func TestAPollingClientMissesNothingHoweverLateTheIndexerRuns(t *testing.T) {
	w := newWorld(t)
	writer, first := w.writer(&parked{}), w.views()
	w.sizes(t, first, index.Query{})
	w.put(value.NewID(), 1, false)
	late := len(w.stream)
	w.advance(5 * time.Minute)
	polled := w.clock()
	if got := w.sizes(t, first, index.Query{}); len(got) != 0 {
		t.Fatalf("while the indexer is held back: got %v, want nothing", got)
	}
	// Another instance starts, fills its view from the table, and answers.
	w.advance(5 * time.Minute)
	second := w.views()
	since := index.Query{Filter: index.VisibleWithin(polled.Add(-time.Minute).UnixMilli(), 1<<63-1)}
	if got := w.sizes(t, second, since); len(got) != 1 {
		t.Errorf("from the new instance, changes since the last poll: got %v, want the change", got)
	}
	w.handle(t, writer, w.stream[:late])
	w.advance(indexing.Freshness)
	if got := w.sizes(t, first, since); len(got) != 1 {
		t.Errorf("from the first instance after the indexer ran: got %v, want the change", got)
	}
}

func TestADeletedThingIsNotBroughtBackByAReplay(t *testing.T) {
	w := newWorld(t)
	writer, id := w.writer(&parked{}), value.NewID()
	w.put(id, 1, false)
	w.put(id, 1, true)
	views := w.views()
	w.sizes(t, views, index.Query{})
	w.handle(t, writer, w.stream[:1])
	w.advance(indexing.Freshness)
	if got := w.sizes(t, views, index.Query{}); len(got) != 0 {
		t.Errorf("after the put was replayed: got %v, want nothing", got)
	}
}

func TestAPoisonRecordIsParkedAndTheRestGoesOn(t *testing.T) {
	w, park := newWorld(t), &parked{}
	w.put(value.NewID(), 1, false)
	records := append([]events.DynamoDBEventRecord{{Change: events.DynamoDBStreamRecord{SequenceNumber: "bad"}}}, w.stream...)
	w.handle(t, w.writer(park), records)
	if got := w.sizes(t, w.views(), index.Query{}); len(got) != 1 || park.n != 1 {
		t.Errorf("listed %v, parked %d; want one of each", got, park.n)
	}
}

// away is a change log that is out of reach.
type away struct{}

func (away) AppendTail(context.Context, value.ID, string, []byte) error {
	return fault.Busy(errors.New("throttled"))
}

func TestABusyTableFailsTheBatchFromItsFirstRecord(t *testing.T) {
	w := newWorld(t)
	w.put(value.NewID(), 1, false)
	w.put(value.NewID(), 1, false)
	writer := indexing.NewWriter(away{}, w.decode, &parked{}, slog.New(slog.DiscardHandler))
	response, err := writer.Handle(t.Context(), events.DynamoDBEvent{Records: w.stream})
	if err != nil || len(response.BatchItemFailures) != 1 || response.BatchItemFailures[0].ItemIdentifier != "0" {
		t.Errorf("got %+v, %v; want a failure of sequence 0", response, err)
	}
}

func TestViewsLeaveWhenMemoryIsShort(t *testing.T) {
	w := newWorld(t)
	w.put(value.NewID(), 1, false)
	views := indexing.NewViews(w.table, indexing.Config{Clock: w.clock, MaxBytes: 1})
	for _, org := range []value.ID{w.org, value.NewID(), w.org} {
		if _, err := views.View(t.Context(), org, w.list()); err != nil {
			t.Fatal(err)
		}
		w.advance(time.Millisecond)
	}
	if w.loads != 3 {
		t.Errorf("loads: got %d, want 3: only one view fits", w.loads)
	}
}

func TestATableThatHangsAnswersUnavailable(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	hang := make(chan struct{})
	defer close(hang)
	list := &indexing.List{Name: "things", Schema: schema, Load: func(context.Context, value.ID, func(index.Document)) error {
		cancel()
		<-hang
		return nil
	}}
	if _, err := w.views().View(ctx, w.org, list); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want a fault of kind Unavailable", err)
	}
}
