package columnar_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

func TestViewAnswersAsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, m := columnar.NewView(everything), model{}
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			batch := rapid.SliceOfN(genRecord(), 0, 25).Draw(t, "batch")
			v.Apply(documents(batch))
			m.apply(batch)
			for range 3 {
				q, c := genQuery(t)
				checkQuery(t, v, m, q, c)
			}
		}
	})
}

func documents(batch []record) []columnar.Document {
	docs := []columnar.Document{}
	for _, r := range batch {
		docs = append(docs, r.document())
	}
	return docs
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func checkQuery(t failer, v *columnar.View, m model, q columnar.Query, c condition) {
	t.Helper()
	got, want := v.Query(q), m.query(q, c.holds)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", describe(q, c), diff)
	}
}

func TestOrderOfApplyDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batch := rapid.SliceOfN(genRecord(), 1, 30).Draw(t, "batch")
		// The same revision of a document is the same content.
		same := map[string]record{}
		for i, r := range batch {
			k := fmt.Sprint(r.id, r.sub, r.revision)
			if first, ok := same[k]; ok {
				first.visible = r.visible
				batch[i] = first
				continue
			}
			same[k] = r
		}
		once, again := columnar.NewView(everything), columnar.NewView(everything)
		once.Apply(documents(batch))
		shuffled := rapid.Permutation(slices.Concat(batch, batch)).Draw(t, "shuffled")
		for batch := range slices.Chunk(shuffled, rapid.IntRange(1, 10).Draw(t, "size")) {
			again.Apply(documents(batch))
		}
		q := columnar.Query{OrderBy: name, Limit: 100}
		if diff := gocmp.Diff(once.Query(q), again.Query(q)); diff != "" {
			t.Fatalf("applied in another order (-once +again):\n%s", diff)
		}
	})
}

func TestMatchAgreesWithAView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genRecord().Draw(t, "record")
		q, c := genQuery(t)
		v := columnar.NewView(everything)
		v.Apply([]columnar.Document{r.document()})
		want := v.Query(columnar.Query{Filter: q.Filter, Search: q.Search}).Total == 1
		if got := columnar.Match(everything, q, r.document()); got != want {
			t.Fatalf("Match(%s, %+v) = %v, the view says %v", describe(q, c), r, got, want)
		}
	})
}

// Thousands of documents in many rounds of changes: row groups fill, are packed and
// signed, wear out and are moved, and dictionaries shed what is unused.
func TestLargeViewAnswersAsTheModelWhileItIsRewritten(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const ids, rounds, batchSize = 9_000, 40, 700
	random := rand.New(rand.NewPCG(1, 2))
	v, m := columnar.NewView(everything), model{}
	for round := range rounds {
		size := batchSize
		if round == 0 {
			size = ids
		}
		batch := make([]record, size)
		for i := range batch {
			batch[i] = randomRecord(random, ids, int64(round))
		}
		v.Apply(documents(batch))
		m.apply(batch)
		for range 6 {
			q, c := randomQuery(random, ids)
			checkQuery(t, v, m, q, c)
		}
	}
	want := m.query(columnar.Query{}, func(record) bool { return true }).Total
	if got := v.Len(); got != want {
		t.Errorf("Len() = %d, want %d", got, want)
	}
}
