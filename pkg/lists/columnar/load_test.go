package columnar_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

// The view under test takes some batches as changes and some as segments, whose
// text comes at once, later or never; queries wait for what they need.
func TestViewOfSegmentsAnswersAsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := newWaitingView(everything), model{}
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			w.step(t, m)
			for range 3 {
				q, c := genQuery(t)
				w.need(t, everything.Needs(&q))
				checkQuery(t, w.view, m, q, c)
			}
		}
		if got, want := w.view.Len(), m.query(columnar.Query{}, func(record) bool { return true }).Total; got != want {
			t.Fatalf("Len() = %d, want %d", got, want)
		}
	})
}

// waitingView is a view with what its segments still lack.
type waitingView struct {
	view     *columnar.View
	segments []waitingSegment
}

type waitingSegment struct {
	segment *segment.Segment
	encoded segment.Encoded
	has     columnar.ColumnGroupSet
}

func newWaitingView(s *columnar.Schema) *waitingView { return &waitingView{view: columnar.NewView(s)} }

func (w *waitingView) step(t *rapid.T, m model) {
	if rapid.Bool().Draw(t, "apply") {
		batch := rapid.SliceOfN(genRecord(), 0, 25).Draw(t, "batch")
		w.view.Apply(documents(batch))
		m.apply(batch)
		return
	}
	var batches [][]record
	var groups [][]columnar.ColumnGroup
	for range rapid.IntRange(1, 3).Draw(t, "segments") {
		batches = append(batches, rapid.SliceOfN(genRecord(), 0, 25).Draw(t, "batch"))
		groups = append(groups, rapid.SliceOfDistinct(rapid.SampledFrom(textGroups(everything)), func(g columnar.ColumnGroup) columnar.ColumnGroup { return g }).Draw(t, "groups"))
	}
	w.load(t, batches, groups)
	for _, batch := range batches {
		m.apply(batch)
	}
}

func (w *waitingView) load(t failer, batches [][]record, groups [][]columnar.ColumnGroup) {
	var segments []*segment.Segment
	for i, batch := range batches {
		e := segment.Encode(everything, documents(batch))
		g := decoded(t, everything, e, groups[i]...)
		has := columnar.ColumnGroupSet(1)
		for _, group := range groups[i] {
			has |= 1 << group
		}
		w.segments = append(w.segments, waitingSegment{g, e, has})
		segments = append(segments, g)
	}
	segment.Load(w.view, segments...)
}

// need fills groups in.
func (w *waitingView) need(t failer, groups columnar.ColumnGroupSet) {
	for i := range w.segments {
		s := &w.segments[i]
		for g := columnar.SearchText; g < columnar.NumColumnGroups; g++ {
			if groups.Has(g) && !s.has.Has(g) {
				if err := s.segment.Fill(w.view, g, s.encoded.Groups[g]); err != nil {
					t.Fatalf("Fill(%s): %v", g, err)
				}
				s.has |= 1 << g
			}
		}
	}
}

// Thousands of documents, changed and loaded in many rounds: row groups fill, are packed
// and indexed, wear out and are moved, and dictionaries drop what is unused.
func TestLargeViewOfSegmentsAnswersAsTheModel(t *testing.T) {
	const ids, rounds = 9_000, 20
	random := rand.New(rand.NewPCG(7, 8))
	w, m := newWaitingView(everything), model{}
	for round := range rounds {
		size := []int{700, 60, 3000}[random.IntN(3)]
		if round == 0 {
			size = ids
		}
		batch := make([]record, size)
		for i := range batch {
			batch[i] = randomRecord(random, ids, int64(round))
		}
		switch random.IntN(5) {
		case 0, 1:
			w.view.Apply(documents(batch))
		case 2:
			w.load(t, [][]record{batch}, [][]columnar.ColumnGroup{textGroups(everything)})
		default:
			half := len(batch) / 2
			w.load(t, [][]record{batch[:half], batch[half:]}, [][]columnar.ColumnGroup{{columnar.SearchText}, nil})
		}
		m.apply(batch)
		for range 6 {
			q, c := randomQuery(random, ids)
			w.need(t, everything.Needs(&q))
			checkQuery(t, w.view, m, q, c)
		}
	}
	if got, want := w.view.Len(), m.query(columnar.Query{}, func(record) bool { return true }).Total; got != want {
		t.Errorf("Len() = %d, want %d", got, want)
	}
}

func TestQueriesPanicOnlyWhenTheirDocumentsLackText(t *testing.T) {
	docs := func(from int, s string) []columnar.Document {
		var list []columnar.Document
		for n := range 600 {
			list = append(list, everything.Build(number(from+n), 0).Keyword(state, s).Text(name, "shirt").Text(lastName, "x").Text(ref, "r").Document(1, 1))
		}
		return list
	}
	e := segment.Encode(everything, docs(0, "lacks"))
	whole := segment.Encode(everything, docs(1000, "whole"))
	newView := func() (*columnar.View, *segment.Segment) {
		v, g := columnar.NewView(everything), decoded(t, everything, e)
		segment.Load(v, g, wholeSegment(t, everything, whole))
		v.Apply(docs(5000, "applied"))
		return v, g
	}
	v, g := newView()
	for _, row := range []struct {
		name  string
		query columnar.Query
		group columnar.ColumnGroup // that it needs, or 0
	}{
		{"all", columnar.Query{Limit: 5}, 0},
		{"keyword", columnar.Query{Filter: columnar.In(state, "lacks"), OrderBy: price, Limit: 5}, 0},
		{"search", columnar.Query{Search: []string{"shirt"}}, columnar.SearchText},
		{"empty search", columnar.Query{Search: []string{""}}, 0},
		{"order", columnar.Query{OrderBy: name, Limit: 5}, columnar.SearchText},
		{"order of some", columnar.Query{Filter: columnar.In(state, "lacks"), OrderBy: name, Limit: 5}, columnar.SearchText},
		{"order of many", columnar.Query{Filter: columnar.Not(columnar.In(state, "applied")), OrderBy: lastName, Limit: 5}, columnar.OtherText},
		{"order in a walk", columnar.Query{OrderBy: name, Limit: 5, AfterID: &[16]byte{}}, 0},
		{"text", columnar.Query{Filter: columnar.In(ref, "r")}, columnar.OtherText},
		{"no text", columnar.Query{Filter: columnar.Not(columnar.Null(sku))}, columnar.SearchText},
	} {
		t.Run(row.name, func(t *testing.T) {
			want := columnar.ColumnGroupSet(1)
			if row.group != 0 {
				want |= 1 << row.group
			}
			if got := everything.Needs(&row.query); got != want {
				t.Errorf("needs %b, want %b", got, want)
			}
			message := panicOf(func() { v.Query(row.query) })
			if got := strings.Contains(message, "lacks its "+row.group.String()); got != (row.group != 0) {
				t.Errorf("panic %q, want one: %v", message, row.group != 0)
			}
			// Where the filter leaves no such document, nothing is lacking.
			row.query.Filter = columnar.All(columnar.In(state, "whole", "applied"), row.query.Filter)
			if message := panicOf(func() { v.Query(row.query) }); message != "" {
				t.Errorf("%s, of others: panic %q", row.name, message)
			}
			filled, g := newView()
			if row.group != 0 {
				if err := g.Fill(filled, row.group, e.Groups[row.group]); err != nil {
					t.Fatal(err)
				}
			}
			if message := panicOf(func() { filled.Query(row.query) }); message != "" {
				t.Errorf("%s, filled: panic %q", row.name, message)
			}
		})
	}
	if message := panicOf(func() { _ = g.Decode(columnar.SearchText, nil) }); !strings.Contains(message, "in a view") {
		t.Errorf("Decode of a segment in a view: panic %q", message)
	}
}

func panicOf(f func()) (message string) {
	defer func() {
		if r := recover(); r != nil {
			message = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

func TestMistakesWithSegmentsPanic(t *testing.T) {
	docs := []columnar.Document{
		everything.Build(number(1), 0).Keyword(state, "new").Text(name, "a shirt").Text(ref, "X 1").Document(1, 1),
		everything.Tombstone(number(2), 0, 1, 1),
	}
	e := segment.Encode(everything, docs)
	v := columnar.NewView(everything)
	loaded, other := decoded(t, everything, e), wholeSegment(t, everything, e)
	segment.Load(v, loaded)
	segment.Load(columnar.NewView(everything), other)
	for name, mistake := range map[string]func(){
		"load twice":                     func() { segment.Load(v, loaded) },
		"load into another kind":         func() { segment.Load(columnar.NewView(products), decoded(t, everything, e)) },
		"fill what is elsewhere":         func() { _ = other.Fill(v, columnar.SearchText, e.Groups[1]) },
		"fill what is nowhere":           func() { _ = decoded(t, everything, e).Fill(v, columnar.SearchText, e.Groups[1]) },
		"documents of what lacks text":   func() { decoded(t, everything, e).Documents() },
		"documents of what is in a view": func() { other.Documents() },
		"merge what lacks text": func() {
			_, _ = segment.Merge(everything, []*segment.Segment{decoded(t, everything, e)}, nil)
		},
		"merge another kind": func() {
			_, _ = segment.Merge(products, []*segment.Segment{decoded(t, everything, e)}, nil)
		},
		"encode another kind": func() { segment.Encode(products, docs) },
	} {
		t.Run(name, func(t *testing.T) {
			if message := panicOf(mistake); !strings.HasPrefix(message, "index: ") {
				t.Errorf("panic %q, want one that says what is wrong", message)
			}
		})
	}
}

func TestSchemasWithoutSomeTextHaveFewerGroups(t *testing.T) {
	plain := columnar.Column{Name: "state", Type: columnar.Keyword}
	for _, row := range []struct {
		name    string
		columns []columnar.Column
		want    columnar.ColumnGroupSet
	}{
		{"no column", nil, 0b001},
		{"no text", []columnar.Column{plain}, 0b001},
		{"searched only", []columnar.Column{plain, {Name: "name", Type: columnar.Text, Search: true}}, 0b011},
		{"matched only", []columnar.Column{plain, {Name: "name", Type: columnar.Text, Match: true}}, 0b101},
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
			if got := s.ColumnGroups(); got != row.want {
				t.Errorf("groups %b, want %b", got, row.want)
			}
			for g, data := range e.Groups {
				if got, want := data != nil, row.want.Has(columnar.ColumnGroup(g)); got != want {
					t.Errorf("%s is written: %v, want %v", columnar.ColumnGroup(g), got, want)
				}
			}
			v := columnar.NewView(s)
			segment.Load(v, wholeSegment(t, s, e))
			want := 0
			if row.want.Has(columnar.SearchText) {
				want = 1355 // numbers below 5,000 with a 9
			}
			if all, found := v.Query(columnar.Query{}).Total, v.Query(columnar.Query{Search: []string{"9"}}).Total; all != 5000 || found != want {
				t.Errorf("%d documents, %d found, want 5000 and %d", all, found, want)
			}
		})
	}
}

// Values that nothing uses any more leave the dictionaries while segments bring
// new ones.
func TestKeywordsOfSegmentsSurviveThatOthersAreShed(t *testing.T) {
	const size = 3000
	batch := func(from int, revision int64) []columnar.Document {
		docs := make([]columnar.Document, size)
		for i := range docs {
			n := from + i
			docs[i] = everything.Build(number(i), 0).Keyword(state, fmt.Sprint(revision, " ", n)).
				Keyword(sites, "all", fmt.Sprint("of ", n%500)).Text(name, fmt.Sprint(n)).Document(revision, revision)
		}
		return docs
	}
	v := columnar.NewView(everything)
	for revision := int64(1); revision <= 12; revision++ {
		if docs := batch(int(revision), revision); revision%2 == 0 {
			v.Apply(docs)
		} else {
			segment.Load(v, wholeSegment(t, everything, segment.Encode(everything, docs)))
		}
		for _, row := range []struct {
			filter columnar.Filter
			want   int
		}{
			{columnar.In(state, fmt.Sprint(revision, " ", int(revision)+7)), 1},
			{columnar.In(state, fmt.Sprint(revision-1, " ", int(revision)+7)), 0},
			{columnar.In(sites, "all"), size},
			{columnar.In(sites, "of 44"), size / 500},
		} {
			if got := v.Query(columnar.Query{Filter: row.filter}).Total; got != row.want {
				t.Fatalf("revision %d: %d hits, want %d", revision, got, row.want)
			}
		}
	}
	if got, bound := v.Bytes(), int64(size*500); got > bound {
		t.Errorf("%d documents take %d bytes, want at most %d", v.Len(), got, bound)
	}
}

func TestBytesOfALoadedViewIsCloseToTheHeap(t *testing.T) {
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
	took, estimate := heap()-before, v.Bytes()
	if ratio := float64(estimate) / float64(took); ratio < 0.9 || ratio > 1.1 {
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
		segments := []*segment.Segment{decoded(t, everything, a), decoded(t, everything, b)}
		segment.Load(v, segments...)
		for i, e := range []segment.Encoded{a, b} {
			for _, group := range textGroups(everything) {
				if err := segments[i].Fill(v, group, e.Groups[group]); err != nil {
					t.Error(err)
				}
			}
		}
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
