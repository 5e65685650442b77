package indexing

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
)

// Difference is one document that an index and the table do not agree on. A
// difference may be a change that is on its way: it counts when it is still
// there some seconds later.
type Difference struct {
	ID    value.ID
	Sub   uint8
	Index int64 // revision, 0 where there is none
	Table int64 // likewise; equal revisions differ in their values
	// Part is the part of the list whose count is wrong; the other fields are
	// zero then.
	Part int32
}

// String says what differs.
func (d Difference) String() string {
	switch {
	case d.ID == value.ID{}:
		return fmt.Sprintf("part %d: its summary is not that of its documents", d.Part)
	case d.Index == 0:
		return fmt.Sprintf("%s: in the table at revision %d, not in the index", d.ID, d.Table)
	case d.Table == 0:
		return fmt.Sprintf("%s: in the index at revision %d, not in the table", d.ID, d.Index)
	case d.Index == d.Table:
		return fmt.Sprintf("%s: values of revision %d differ", d.ID, d.Index)
	}
	return fmt.Sprintf("%s: revision %d in the index, %d in the table", d.ID, d.Index, d.Table)
}

// Verify compares the index of an organization's list with the table. It holds
// the whole index in memory, as documents. The differences are in no order.
func Verify(ctx context.Context, table *dynamo.Table, org value.ID, list *List, now time.Time) ([]Difference, error) {
	s := storage{table, org, list, func() time.Time { return now }}
	indexed, differences, err := s.documents(ctx)
	if err != nil {
		return nil, err
	}
	for shard := range list.Shards {
		for after := ""; ; {
			documents, next, err := list.Read(ctx, org, shard, after)
			if err != nil {
				return nil, err
			}
			for i := range documents {
				if d, differs := compare(indexed, &documents[i]); differs {
					differences = append(differences, d)
				}
			}
			if after = next; after == "" {
				break
			}
		}
	}
	for key, d := range indexed {
		if ms, ok := list.age(&d); ok && list.Keep > 0 && ms < now.Add(-list.Keep).UnixMilli() {
			continue // of no use any more, and soon dropped
		}
		differences = append(differences, Difference{ID: key.id, Sub: key.sub, Index: d.Revision})
	}
	return differences, nil
}

func (l *List) age(d *columnar.Document) (int64, bool) {
	if l.By == Whole {
		return 0, false
	}
	return d.Time(l.On)
}

// compare takes the document of the table out of those indexed.
func compare(indexed map[docKey]columnar.Document, d *columnar.Document) (Difference, bool) {
	key := docKey{id: d.ID, sub: d.Sub}
	in, ok := indexed[key]
	delete(indexed, key)
	difference := Difference{ID: d.ID, Sub: d.Sub, Index: in.Revision, Table: d.Revision}
	if !ok {
		difference.Index = 0
		return difference, true
	}
	in.Visible = d.Visible
	same := in.Revision == d.Revision && bytes.Equal(columnar.AppendDocument(nil, &in), columnar.AppendDocument(nil, d))
	return difference, !same
}

// documents reads all documents of an index, and which summaries are wrong.
func (s storage) documents(ctx context.Context) (map[docKey]columnar.Document, []Difference, error) {
	m, _, err := s.load(ctx)
	if err != nil {
		return nil, nil, err
	}
	found, wrong := map[docKey]columnar.Document{}, []Difference(nil)
	for i := range m.parts {
		p := &m.parts[i]
		segments, err := s.open(ctx, p.all(), s.list.Schema.Groups())
		if err != nil {
			return nil, nil, err
		}
		for _, segment := range segments {
			for d := range segment.Documents() {
				supersede(found, d)
			}
		}
		view := columnar.NewView(s.list.Schema)
		view.Load(segments...)
		if p.sealed && !equalSummaries(view.Summary(), p.summary) {
			wrong = append(wrong, Difference{Part: p.number})
		}
	}
	err = s.tail(ctx, m.covered, true, func(_ uint64, e tailEntry) error {
		for _, d := range e.documents {
			supersede(found, d.Document)
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

func equalSummaries(a, b columnar.Summary) bool {
	return a.Count == b.Count && a.Visible == b.Visible && slices.Equal(a.Times, b.Times)
}

// supersede keeps the document that counts, by the rules of [index.View.Apply].
func supersede(found map[docKey]columnar.Document, d columnar.Document) {
	key := docKey{id: d.ID, sub: d.Sub}
	known, ok := found[key]
	if !ok || d.Revision > known.Revision || d.Revision == known.Revision && d.Deleted {
		found[key] = d
	}
}
