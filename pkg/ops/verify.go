package ops

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

// Difference is a document on which an index and the table disagree, or a
// wrong summary of a partition.
type Difference struct {
	ID    value.ID `json:"id,omitzero"`
	Sub   uint8    `json:"-"`
	Index int64    `json:"index"` // revision there, 0 for none
	Table int64    `json:"table"` // likewise; with equal revisions the values differ
	// Partition is the number of the partition whose summary is wrong, with all
	// other fields zero.
	Partition int32 `json:"partition,omitzero"`
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

// Verifier compares indexes with the table, several times: a difference may
// only be a change on its way to the index.
type Verifier struct {
	Waits []time.Duration // before each further comparison
	Pause func(context.Context, time.Duration) error
}

// indexed is where indexes are, and what they are made of.
type indexed interface {
	index.Reader
	index.FieldReader
}

// Verify returns the differences of a list that every comparison finds, in the
// order of their IDs. An index that cannot be read may have changed meanwhile,
// and is read again too.
func (v Verifier) Verify(ctx context.Context, storage indexed, org value.ID, list *index.List) ([]Difference, error) {
	differences, err := Verify(ctx, storage, org, list, time.Now())
	compared := err == nil
	for _, wait := range v.Waits {
		if err == nil && len(differences) == 0 {
			return nil, nil
		}
		if err := v.Pause(ctx, wait); err != nil {
			return nil, err
		}
		var now []Difference
		switch now, err = Verify(ctx, storage, org, list, time.Now()); {
		case err == nil && compared:
			differences = persisting(differences, now)
		case err == nil:
			differences, compared = now, true
		}
	}
	slices.SortFunc(differences, func(a, b Difference) int {
		return cmp.Or(a.ID.Compare(b.ID), cmp.Compare(a.Sub, b.Sub), cmp.Compare(a.Partition, b.Partition))
	})
	return differences, err
}

// persisting returns the differences of now that were there before, too, and
// in which the index has not reached the table's revision of that time.
func persisting(before, now []Difference) (rest []Difference) {
	subject := func(d Difference) Difference { return Difference{ID: d.ID, Sub: d.Sub, Partition: d.Partition} }
	found := make(map[Difference]Difference, len(now))
	for _, d := range now {
		found[subject(d)] = d
	}
	for _, was := range before {
		if is, still := found[subject(was)]; still && (is.Index == was.Index || is.Index < was.Table) {
			rest = append(rest, is)
		}
	}
	return rest
}

type documentKey struct {
	id  value.ID
	sub uint8
}

// Verify compares the index of an organization's list with the table once. It
// holds all documents of the index in memory. The differences are unordered.
func Verify(ctx context.Context, storage indexed, org value.ID, list *index.List, now time.Time) ([]Difference, error) {
	key := index.Key{Org: org, List: list}
	fields, err := key.Fields(ctx, storage)
	if err != nil {
		return nil, err
	}
	indexed, differences, built, err := documents(ctx, index.Index{Key: key, Reader: storage})
	if err != nil {
		return nil, err
	}
	shown := func(d *columnar.Document) []byte {
		return columnar.AppendDocument(nil, new(fields.Comparable(list.Kind, d, built)))
	}
	for shard := range list.Shards {
		for after, more := "", true; more; more = after != "" {
			page, next, err := list.Read(ctx, org, shard, after)
			if err != nil {
				return nil, err
			}
			for i := range page {
				if d, differs := compare(indexed, &page[i], shown); differs {
					differences = append(differences, d)
				}
			}
			after = next
		}
	}
	for key, d := range indexed {
		if !list.ExpiredDocument(&d, now) { // the Compactor will drop it
			differences = append(differences, Difference{ID: key.id, Sub: key.sub, Index: d.Revision})
		}
	}
	return differences, nil
}

// compare removes the table's document from the indexed ones.
func compare(indexed map[documentKey]columnar.Document, d *columnar.Document, shown func(*columnar.Document) []byte) (Difference, bool) {
	key := documentKey{d.ID, d.Sub}
	in, ok := indexed[key]
	delete(indexed, key)
	difference := Difference{ID: d.ID, Sub: d.Sub, Index: in.Revision, Table: d.Revision}
	if !ok {
		return difference, true
	}
	in.Visible = d.Visible
	same := in.Revision == d.Revision && bytes.Equal(shown(&in), shown(d))
	return difference, !same
}

// documents reads all documents of an index, and checks the summaries of its
// sealed partitions. built is the greatest number of a field that all of them have.
func documents(ctx context.Context, x index.Index) (found map[documentKey]columnar.Document, wrong []Difference, built int, err error) {
	m, _, err := x.Load(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	x = x.As(m.Layout)
	found = map[documentKey]columnar.Document{}
	for _, p := range m.Partitions {
		segments, err := x.Open(ctx, p.Segments, true)
		if err != nil {
			return nil, nil, 0, err
		}
		for _, segment := range segments {
			for _, d := range segment.Documents() {
				keepNewest(found, d)
			}
		}
		view := columnar.NewView(x.List.Schema)
		segment.Load(view, segments...)
		if p.Sealed && !p.Summary.Equal(view.Summary()) {
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
	return found, wrong, m.Fields, err
}

// keepNewest keeps the document that [columnar.View.Apply] would keep.
func keepNewest(found map[documentKey]columnar.Document, d columnar.Document) {
	key := documentKey{d.ID, d.Sub}
	known, ok := found[key]
	if !ok || d.Revision > known.Revision || d.Revision == known.Revision && d.Deleted {
		found[key] = d
	}
}
