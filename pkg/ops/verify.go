// Package ops is what the operator's commands do, apart from flags and output.
package ops

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/index"
	"github.com/commerce-integration/service/pkg/lists/segment"
	"github.com/commerce-integration/service/pkg/value"
)

// Difference is one document that an index and the table do not agree on. A
// difference may be a change that is still on its way: it counts when it is
// still there some seconds later.
type Difference struct {
	ID    value.ID
	Sub   uint8
	Index int64 // revision, 0 where there is none
	Table int64 // likewise; with equal revisions the values differ
	// Partition is the partition of the list whose count is wrong; the other
	// fields are zero then.
	Partition int32
}

// String says what differs.
func (d Difference) String() string {
	switch {
	case d.ID == value.ID{}:
		return fmt.Sprintf("part %d: its summary is not that of its documents", d.Partition)
	case d.Index == 0:
		return fmt.Sprintf("%s: in the table at revision %d, not in the index", d.ID, d.Table)
	case d.Table == 0:
		return fmt.Sprintf("%s: in the index at revision %d, not in the table", d.ID, d.Index)
	case d.Index == d.Table:
		return fmt.Sprintf("%s: values of revision %d differ", d.ID, d.Index)
	}
	return fmt.Sprintf("%s: revision %d in the index, %d in the table", d.ID, d.Index, d.Table)
}

type documentKey struct {
	id  value.ID
	sub uint8
}

// Verify compares the index of an organization's list with the table. It holds
// the whole index in memory, as documents. The differences are in no order.
func Verify(ctx context.Context, storage index.Reader, org value.ID, list *index.List, now time.Time) ([]Difference, error) {
	indexed, differences, err := documents(ctx, index.Index{Key: index.Key{Org: org, List: list}, Reader: storage})
	if err != nil {
		return nil, err
	}
	for shard := range list.Shards {
		for after, more := "", true; more; more = after != "" {
			page, next, err := list.Read(ctx, org, shard, after)
			if err != nil {
				return nil, err
			}
			for i := range page {
				if d, differs := compare(indexed, &page[i]); differs {
					differences = append(differences, d)
				}
			}
			after = next
		}
	}
	for key, d := range indexed {
		if !list.ExpiredDocument(&d, now) { // those are soon dropped
			differences = append(differences, Difference{ID: key.id, Sub: key.sub, Index: d.Revision})
		}
	}
	return differences, nil
}

// compare removes the table's document from those indexed.
func compare(indexed map[documentKey]columnar.Document, d *columnar.Document) (Difference, bool) {
	key := documentKey{d.ID, d.Sub}
	in, ok := indexed[key]
	delete(indexed, key)
	difference := Difference{ID: d.ID, Sub: d.Sub, Index: in.Revision, Table: d.Revision}
	if !ok {
		return difference, true
	}
	in.Visible = d.Visible
	same := in.Revision == d.Revision && bytes.Equal(columnar.AppendDocument(nil, &in), columnar.AppendDocument(nil, d))
	return difference, !same
}

// documents reads all documents of an index, and which summaries are wrong.
func documents(ctx context.Context, x index.Index) (found map[documentKey]columnar.Document, wrong []Difference, err error) {
	m, _, err := x.Load(ctx)
	if err != nil {
		return nil, nil, err
	}
	found = map[documentKey]columnar.Document{}
	for _, p := range m.Partitions {
		segments, err := x.Open(ctx, p.Segments, x.List.Schema.ColumnGroups())
		if err != nil {
			return nil, nil, err
		}
		for _, segment := range segments {
			for d := range segment.Documents() {
				keepNewest(found, d)
			}
		}
		view := columnar.NewView(x.List.Schema)
		segment.Load(view, segments...)
		if p.Sealed && !equal(view.Summary(), p.Summary) {
			wrong = append(wrong, Difference{Partition: p.Number})
		}
	}
	err = x.Tail(ctx, m.Covered, true, func(_ uint64, e index.TailEntry) error {
		for _, c := range e.Changes {
			keepNewest(found, c.Document)
		}
		return nil
	})
	for key, d := range found {
		if d.Deleted {
			delete(found, key)
		}
	}
	return found, wrong, err
}

func equal(a, b columnar.Summary) bool {
	return a.Count == b.Count && a.Visible == b.Visible && slices.Equal(a.Times, b.Times)
}

// keepNewest keeps the document that counts, by the rules of
// [columnar.View.Apply].
func keepNewest(found map[documentKey]columnar.Document, d columnar.Document) {
	key := documentKey{d.ID, d.Sub}
	known, ok := found[key]
	if !ok || d.Revision > known.Revision || d.Revision == known.Revision && d.Deleted {
		found[key] = d
	}
}
