package columnar_test

import (
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

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
