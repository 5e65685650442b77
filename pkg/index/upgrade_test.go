package index_test

import (
	"testing"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
)

func TestWhatALaterReleaseWroteIsBusyAndNeverRebuilt(t *testing.T) {
	inBoth(t, func(t *testing.T, w *harness) {
		writer, key := w.indexer(&parked{}), index.Key{Org: w.org, List: w.list}
		w.put(value.NewID(), thing{size: 1, month: 1})
		w.handle(t, writer, w.stream)
		before := w.want()
		_, err := w.storage.AppendTail(t.Context(), w.org, w.list.Name, func(next index.Position) ([]byte, error) {
			return key.SealEntry(next.Sequence, []byte{200, 0}), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		cache := w.views()
		for range 2 {
			if _, err := cache.Query(t.Context(), w.org, w.list, columnar.Query{Limit: 1}, false); !fault.Is(err, fault.Unavailable) {
				t.Errorf("got %v, want a fault of kind Unavailable", err)
			}
		}
		w.maintain(t, w.compactor())
		w.neverRebuilt(t)
		m, _, err := index.Index{Key: key, Reader: w.storage}.Load(t.Context())
		if err != nil || m.Covered != 1 {
			t.Errorf("the manifest covers %d entries, %v; want the one that can be read", m.Covered, err)
		}
		if len(before) != 1 || m.Partitions[0].Rows() != 1 {
			t.Errorf("%d rows are stored, want 1", m.Partitions[0].Rows())
		}
	})
}

// neverRebuilt checks that no rebuild was requested, or done.
func (w *harness) neverRebuilt(t *testing.T) {
	t.Helper()
	if m, err := w.storage.Manifest(t.Context(), w.org, w.list.Name, index.RebuildManifest); m != nil || err != nil {
		t.Errorf("a rebuild is under way: %v, %v", m, err)
	}
}
