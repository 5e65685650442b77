package index_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
	"github.com/commerce-integration/service/pkg/index/indexer"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/ops"
)

// color is a column that later releases have.
var color = columnar.Column{Name: "color", Type: columnar.Keyword}

// release is the programs of one release, over the harness's table.
type release struct {
	*harness
	list *index.List
	warm *views.Cache
	log  *bytes.Buffer
}

func (w *harness) release(format int, columns ...columnar.Column) *release {
	list, log := *w.list, &bytes.Buffer{}
	list.Format, list.Schema = format, columnar.MustSchema("things", append(schema.Columns(), columns...)...)
	r := &release{w, &list, nil, log}
	list.Read = func(ctx context.Context, org value.ID, shard int, after string) ([]columnar.Document, string, error) {
		documents, next, err := w.read(ctx, org, shard, after)
		for i, d := range documents {
			documents[i] = r.document(d.ID, w.things[d.ID])
		}
		return documents, next, err
	}
	r.warm = r.views()
	return r
}

func (r *release) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r.log, nil)) }

func (r *release) views() *views.Cache {
	return views.NewCache(r.storage, views.Config{Clock: r.clock, Start: r.harness, Logger: r.logger()})
}

// document is what the release shows of a thing: its color, too, where it has
// the column.
func (r *release) document(id value.ID, th thing) columnar.Document {
	b := r.list.Schema.Build(id, 0).Number(size, th.size).Text(name, fmt.Sprint("thing ", th.size))
	b.Time(createdAt, time.Date(2026, time.Month(th.month), 3, 0, 0, 0, 0, time.UTC).UnixMilli()+th.size)
	if r.list.Schema.Len() > schema.Len() {
		b.Keyword(r.list.Schema.Col("color"), []string{"red", "blue"}[th.size%2])
	}
	return b.Document(th.revision, 0)
}

// index indexes what the stream has.
func (r *release) index(t *testing.T) {
	t.Helper()
	writer := indexer.New(r.storage, func(ctx context.Context, record *events.DynamoDBEventRecord) ([]indexer.ListChange, error) {
		found, err := r.decode(ctx, record)
		for i := range found {
			if found[i].Key.List = r.list; !found[i].Deleted {
				revision := found[i].Revision
				found[i].Document = r.document(found[i].ID, r.things[found[i].ID])
				found[i].Revision = revision
			}
		}
		return found, err
	}, &parked{}, r.harness, r.logger())
	r.handle(t, writer, r.stream)
	r.stream = nil
}

// work wants a job and runs those that are due.
func (r *release) work(t *testing.T) {
	t.Helper()
	if err := r.storage.RequestJob(t.Context(), r.org, r.list.Name, value.TimeOf(r.clock())); err != nil {
		t.Fatal(err)
	}
	c := compactor.New(r.storage, []*index.List{r.list}, r.clock, r.logger())
	for more := true; more; {
		var err error
		if more, err = c.Run(t.Context(), r.org, r.list.Name); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *release) query(t *testing.T, cache *views.Cache, q columnar.Query) ([]string, error) {
	t.Helper()
	q.OrderBy, q.Limit = size, 1000
	result, err := cache.Query(t.Context(), r.org, r.list, q, true)
	out := []string{}
	for _, hit := range result.Hits {
		out = append(out, fmt.Sprint(value.ID(hit.ID), "@", hit.Revision))
	}
	return out, err
}

// right checks that a view that goes on, and one that begins, show the table.
func (r *release) right(t *testing.T, what string) {
	t.Helper()
	for which, cache := range map[string]*views.Cache{"warm": r.warm, "new": r.views()} {
		got, err := r.query(t, cache, columnar.Query{})
		if want := r.want(); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s: %s view of layout %v: %v, got %v,\nwant %v", what, which, r.key().Layout(), err, got, want)
		}
	}
}

func (r *release) key() index.Key { return index.Key{Org: r.org, List: r.list} }

// sound checks the index itself, too.
func (r *release) sound(t *testing.T, what string) {
	t.Helper()
	r.right(t, what)
	differences, err := ops.Verify(t.Context(), r.storage, r.org, r.list, r.clock())
	if err != nil || len(differences) > 0 {
		t.Errorf("%s: verify: got %v, %v; want no difference", what, differences, err)
	}
}

// busy checks that the list is not answered, and asks for it to be built.
func (r *release) busy(t *testing.T, what string) {
	t.Helper()
	if got, err := r.query(t, r.views(), columnar.Query{}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%s: got %v, %v; want a fault of kind Unavailable", what, got, err)
	}
}

func (r *release) manifests(t *testing.T) map[string]*index.StoredManifest {
	t.Helper()
	all, err := index.Index{Key: r.key(), Reader: r.storage}.Manifests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// deploy is the releases that run in the phases of a deploy.
var deploy = []struct {
	name string
	live []int
}{
	{"before", []int{0}},
	{"canary", []int{0, 1}},
	{"rolled back", []int{0}},
	{"upgraded", []int{1}},
	{"rolled back late", []int{0}},
	{"upgraded again", []int{1}},
}

func TestReleasesSideBySideServeOneTable(t *testing.T) {
	inBoth(t, func(t *testing.T, w *harness) {
		random := rand.New(rand.NewPCG(7, 8))
		releases := []*release{w.release(index.Format), w.release(index.Format + 1)}
		ids := make([]value.ID, 60)
		for i := range ids {
			ids[i] = value.NewID()
		}
		for _, phase := range deploy {
			for _, i := range phase.live {
				releases[i].work(t) // builds the list where the release has none
			}
			anyLive := func() *release { return releases[phase.live[random.IntN(len(phase.live))]] }
			for range 12 {
				for range 1 + random.IntN(8) {
					w.put(ids[random.IntN(len(ids))], thing{size: random.Int64N(90), month: 1 + random.IntN(3), deleted: random.IntN(5) == 0})
				}
				anyLive().index(t)
				anyLive().right(t, phase.name)
				if random.IntN(3) > 0 {
					anyLive().work(t)
				}
				w.advance(time.Duration(random.IntN(150)) * time.Second) // chunks may be overwritten after a minute
				anyLive().right(t, phase.name)
			}
			for _, i := range phase.live {
				releases[i].sound(t, phase.name)
			}
		}
		if got := len(releases[0].manifests(t)); got != 2 {
			t.Errorf("%d manifests, want one of each format", got)
		}
	})
}

func TestTheManifestOfAnEarlierLayoutGoesAfterTwoWeeks(t *testing.T) {
	w := newMemoryHarness()
	old, next := w.release(index.Format), w.release(index.Format+1)
	fill := func(r *release) {
		for n := range 12 {
			w.put(value.NewID(), thing{size: int64(n), month: 1})
			r.index(t)
			r.work(t)
		}
	}
	fill(old)
	fill(next)
	w.advance(13 * 24 * time.Hour)
	fill(next)
	old.sound(t, "within two weeks")
	w.advance(2 * 24 * time.Hour)
	fill(next)
	next.sound(t, "after two weeks")
	all := next.manifests(t)
	if own := all[next.key().Layout().Live()]; len(all) != 1 || own == nil {
		t.Errorf("manifests %v, want the newer one alone", all)
	}
	w.advance(time.Hour)
	fill(next)
	next.sound(t, "with chunks overwritten")
	m, _, err := index.Index{Key: next.key(), Reader: w.storage}.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	named := len(m.Free)
	for _, p := range m.Partitions {
		for _, s := range p.Segments {
			named += len(s.Chunks)
		}
	}
	if stored := w.storage.(*memory).chunks(w.org, w.list.Name); stored != named {
		t.Errorf("%d chunks are stored, and the manifest names %d", stored, named)
	}
}

func TestABuildThatDiesAtAnyCallLeavesBothReleasesTheirIndex(t *testing.T) {
	died := true
	for calls := 0; died; calls++ {
		w := newMemoryHarness()
		old, next := w.release(index.Format), w.release(index.Format+1)
		for n := range 9 {
			w.put(value.NewID(), thing{size: int64(n), month: 1 + n%2})
			old.index(t)
			old.work(t)
		}
		next.busy(t, "before the build")
		dying := compactor.New(w.storage.(*memory).dying(calls), []*index.List{next.list}, w.clock, next.logger())
		for more := true; more; {
			var err error
			more, err = dying.Run(t.Context(), w.org, w.list.Name)
			died = err != nil
		}
		w.advance(2 * time.Hour)
		for n := range 9 {
			w.put(value.NewID(), thing{size: int64(n), month: 1 + n%2})
			old.index(t)
			old.work(t)
			w.advance(2 * time.Minute)
		}
		old.sound(t, fmt.Sprint("died after ", calls))
		next.work(t)
		next.sound(t, fmt.Sprint("died after ", calls))
	}
}

func TestANewColumnLeavesTheListAnswered(t *testing.T) {
	inBoth(t, func(t *testing.T, w *harness) {
		old, next := w.release(0), w.release(0, color)
		for n := range 12 {
			w.put(value.NewID(), thing{size: int64(n), month: 1})
		}
		old.index(t)
		old.work(t)
		red := columnar.Query{Filter: columnar.In(next.list.Schema.Col("color"), "red")}
		next.right(t, "before the rebuild")
		if _, err := next.query(t, next.warm, red); !fault.Is(err, fault.Unavailable) {
			t.Errorf("by the new column: %v, want a fault of kind Unavailable", err)
		}
		next.right(t, "after a refusal")
		old.right(t, "beside a rebuild")
		old.work(t) // leaves the rebuild to the other
		next.right(t, "the rebuild waits")
		next.work(t)
		if got, err := next.query(t, next.warm, red); err != nil || len(got) != 6 {
			t.Errorf("by the new column after the rebuild: got %d, %v; want 6", len(got), err)
		}
		for _, r := range []*release{old, next} {
			w.put(value.NewID(), thing{size: 40, month: 1})
			r.index(t)
			old.work(t)
			next.work(t)
			old.sound(t, "beside the new column")
			next.right(t, "with the new column")
		}
	})
}

func TestWhatALaterReleaseWroteIsBusyAndNeverRebuilt(t *testing.T) {
	inBoth(t, func(t *testing.T, w *harness) {
		r := w.release(0)
		w.put(value.NewID(), thing{size: 1, month: 1})
		r.index(t)
		_, err := w.storage.AppendTail(t.Context(), w.org, w.list.Name, func(next index.Position) ([]byte, error) {
			return r.key().SealEntry(next.Sequence, []byte{200, 0}), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := r.query(t, r.warm, columnar.Query{}); !fault.Is(err, fault.Unavailable) {
				t.Errorf("got %v, want a fault of kind Unavailable", err)
			}
		}
		r.work(t)
		if all, err := (index.Index{Key: r.key(), Reader: w.storage}).Rebuilds(t.Context()); len(all) > 0 || err != nil {
			t.Errorf("a rebuild is under way: %v, %v", all, err)
		}
		m, _, err := index.Index{Key: r.key(), Reader: w.storage}.Load(t.Context())
		if err != nil || m.Covered != 1 || m.Partitions[0].Rows() != 1 {
			t.Errorf("got %+v, %v; want a manifest of the entry that can be read", m, err)
		}
	})
}
