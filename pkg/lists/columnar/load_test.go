package columnar_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

// twoViews are a view with text and one without, of the same documents.
type twoViews struct{ whole, core *columnar.View }

func newTwoViews() twoViews {
	return twoViews{columnar.NewView(everything), columnar.NewCoreView(everything)}
}

func (w twoViews) apply(batch []record) {
	w.whole.Apply(documents(batch))
	w.core.Apply(documents(batch))
}

func (w twoViews) load(t failer, batches ...[]record) {
	t.Helper()
	var whole, core []*segment.Segment
	for _, batch := range batches {
		e := segment.Encode(everything, documents(batch))
		whole, core = append(whole, wholeSegment(t, everything, e)), append(core, coreSegment(t, everything, e))
	}
	segment.Load(w.whole, whole...)
	segment.Load(w.core, core...)
}

// check asks twice: the second time tokens are cached.
func (w twoViews) check(t failer, m model, q columnar.Query, c condition) {
	t.Helper()
	want := m.query(q, c.holds)
	for _, v := range []*columnar.View{w.whole, w.whole, w.core} {
		if v == w.core && everything.NeedsText(&q) {
			continue
		}
		if diff := gocmp.Diff(want, v.Query(q)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", describe(q, c), diff)
		}
	}
}

// The views under test take some batches as changes and some as segments.
func TestViewOfSegmentsAnswersAsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := newTwoViews(), model{}
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			batches := rapid.SliceOfN(rapid.SliceOfN(genRecord(), 0, 25), 1, 3).Draw(t, "batches")
			if rapid.Bool().Draw(t, "apply") {
				batches = batches[:1]
				w.apply(batches[0])
			} else {
				w.load(t, batches...)
			}
			for _, batch := range batches {
				m.apply(batch)
			}
			for range 3 {
				q, c := genQuery(t)
				w.check(t, m, q, c)
			}
		}
	})
}

// Thousands of documents, changed and loaded in many rounds: row groups fill, wear out
// and are moved, and keep the rows of tokens.
func TestLargeViewOfSegmentsAnswersAsTheModel(t *testing.T) {
	const ids, rounds = 6_000, 12
	random := rand.New(rand.NewPCG(7, 8))
	w, m := newTwoViews(), model{}
	type asked struct {
		columnar.Query
		condition
	}
	queries := rapid.Custom(func(t *rapid.T) asked { q, c := genQuery(t); return asked{q, c} })
	var records []record
	for n := range 500 {
		records = append(records, genRecord().Example(n))
	}
	for round := range rounds {
		size := []int{700, 60, 3000}[random.IntN(3)]
		if round == 0 {
			size = ids
		}
		batch := make([]record, size)
		for i := range batch {
			batch[i] = records[random.IntN(len(records))]
			batch[i].id, batch[i].revision = number(random.IntN(ids)), int64(round-random.IntN(3))
		}
		switch random.IntN(3) {
		case 0:
			w.apply(batch)
		case 1:
			w.load(t, batch)
		default:
			w.load(t, batch[:size/2], batch[size/2:])
		}
		m.apply(batch)
		for n := range 4 {
			q := queries.Example(100*round + n)
			w.check(t, m, q.Query, q.condition)
		}
	}
}

func TestMistakesWithSegmentsPanic(t *testing.T) {
	docs := []columnar.Document{everything.Build(number(1), 0).Text(name, "a shirt").Document(1, 1)}
	core := coreSegment(t, everything, segment.Encode(everything, docs))
	for name, mistake := range map[string]func(){
		"load into another kind":       func() { segment.Load(columnar.NewCoreView(products), core) },
		"load what lacks text":         func() { segment.Load(columnar.NewView(everything), core) },
		"documents of what lacks text": func() { core.Documents() },
		"merge what lacks text":        func() { _, _ = segment.Merge(everything, []*segment.Segment{core}, nil) },
		"merge another kind":           func() { _, _ = segment.Merge(products, []*segment.Segment{core}, nil) },
		"encode another kind":          func() { segment.Encode(products, docs) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "index: ") {
					t.Errorf("panic %q, want one that says what is wrong", got)
				}
			}()
			mistake()
		})
	}
}

// TestTextIsWrittenWhereThereIsAny has 5,000 documents of schemas with and without text.
func TestTextIsWrittenWhereThereIsAny(t *testing.T) {
	plain := columnar.Column{Name: "state", Type: columnar.Keyword}
	for _, row := range []struct {
		name    string
		columns []columnar.Column
		found   int // by a search for 9
	}{
		{"no column", nil, 0},
		{"no text", []columnar.Column{plain}, 0},
		{"searched only", []columnar.Column{plain, {Name: "name", Type: columnar.Text, Search: true}}, 1355},
		{"matched only", []columnar.Column{plain, {Name: "name", Type: columnar.Text, Match: true}}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := columnar.MustSchema("some", row.columns...)
			var docs []columnar.Document
			for n := range 5000 {
				b := s.Build(number(n), 0)
				if len(row.columns) > 0 {
					b.Keyword(1, fmt.Sprint(n%7))
				}
				if len(row.columns) > 1 {
					b.Text(2, fmt.Sprint("shirt ", n))
				}
				docs = append(docs, b.Document(1, 1))
			}
			e := segment.Encode(s, docs)
			if got, want := e.Groups[segment.Text] != nil, len(row.columns) > 1; got != want || s.HasText() != want {
				t.Errorf("text is written: %t, HasText() = %t, want %t", got, s.HasText(), want)
			}
			v := columnar.NewView(s)
			segment.Load(v, wholeSegment(t, s, e))
			if all, found := v.Query(columnar.Query{}).Total, v.Query(columnar.Query{Search: []string{"9"}}).Total; all != 5000 || found != row.found {
				t.Errorf("%d documents, %d found, want 5000 and %d", all, found, row.found)
			}
		})
	}
}

func TestBytesOfALoadedViewBoundsTheHeap(t *testing.T) {
	const size = 20_000
	e := segment.Encode(products, productDocuments(size))
	// What zstd keeps for itself is not the view's.
	wholeSegment(t, products, e)
	before := heap()
	v := columnar.NewView(products)
	segment.Load(v, wholeSegment(t, products, e))
	for c, column := range products.Columns() {
		if column.Sort {
			v.Query(columnar.Query{OrderBy: columnar.Col(c + 1), Limit: 1})
		}
	}
	// What is estimated has room for sorting, too.
	took, estimate := heap()-before, v.Bytes()
	if ratio := float64(estimate) / float64(took); ratio < 1 || ratio > 1.4 {
		t.Errorf("Bytes() = %d, the heap grew by %d", estimate, took)
	}
	// 80 B in a segment and 40 MB in a view for 100,000 products.
	total := 0
	for _, data := range e.Groups {
		total += len(data)
	}
	if total > 80*size || estimate > 400*size {
		t.Errorf("%d products take %d bytes encoded and %d in the view, want at most 80 and 400 each", size, total, estimate)
	}
	runtime.KeepAlive(v)
}

// Each step moves every document from one state to another; a query that saw a part of
// it would count some in both or in neither.
func TestQueriesBesideChangesSeeOneState(t *testing.T) {
	const docs, rounds = 600, 40
	v := columnar.NewView(everything)
	all := func(revision int64) []columnar.Document {
		batch := make([]columnar.Document, docs)
		for i := range batch {
			batch[i] = everything.Build(number(i), 0).Keyword(state, fmt.Sprint(revision)).
				Number(price, revision).Text(name, fmt.Sprintf("name %d", i)).Document(revision, revision)
		}
		return batch
	}
	load := func(docs []columnar.Document) {
		a, b := segment.Encode(everything, docs[:len(docs)/2]), segment.Encode(everything, docs[len(docs)/2:])
		segment.Load(v, wholeSegment(t, everything, a), wholeSegment(t, everything, b))
	}
	v.Apply(all(0))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := oneState(v, docs); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for revision := int64(1); revision <= rounds; revision++ {
		if revision%2 == 0 {
			v.Apply(all(revision))
		} else {
			load(all(revision))
		}
		v.Apply(all(revision - 1)[:1])
	}
	close(done)
	readers.Wait()
	if got := v.Query(columnar.Query{Search: []string{"name 1"}, OrderBy: name, Limit: docs}); got.Total != 111 {
		t.Errorf("%d hits in the end, want 111", got.Total)
	}
}

func oneState(v *columnar.View, docs int) error {
	for _, q := range []columnar.Query{
		{OrderBy: price, Limit: docs},
		{Limit: docs, Filter: columnar.Not(columnar.Null(state))},
		{AfterID: &[16]byte{}, Limit: docs - 1},
	} {
		r := v.Query(q)
		for _, h := range r.Hits {
			if h.Revision != r.Hits[0].Revision {
				return fmt.Errorf("%+v: revisions %d and %d on one page", q, r.Hits[0].Revision, h.Revision)
			}
		}
		if r.Total != docs || q.AfterID == nil && len(r.Hits) != docs {
			return fmt.Errorf("%+v: %d hits of %d, want %d", q, len(r.Hits), r.Total, docs)
		}
	}
	if v.Len() != docs || v.Bytes() <= 0 {
		return fmt.Errorf("%d documents in %d bytes", v.Len(), v.Bytes())
	}
	return nil
}
