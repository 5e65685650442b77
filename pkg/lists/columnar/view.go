package columnar

import "sync"

// View answers queries about documents held in memory. Its methods may be called
// by many goroutines at once; a query sees the documents either as they were
// before an Apply or as they are after it.
type View struct {
	schema  *Schema
	mu      sync.RWMutex
	table   *table
	scratch sync.Pool // of *Bits: hits, a bit for each ordinal
}

// NewView returns a view without documents.
func NewView(s *Schema) *View { return newView(s, true) }

// NewCoreView returns a view that keeps no text. It answers the queries that do not need
// any; see Schema.NeedsText.
func NewCoreView(s *Schema) *View { return newView(s, false) }

func newView(s *Schema, text bool) *View {
	return &View{schema: s, table: newTable(s, text && s.HasText()), scratch: sync.Pool{New: func() any { return new(Bits) }}}
}

// Apply adds documents to the view. Of the documents of one ID and Sub, in
// this batch and all before it, the one with the highest Revision counts, so that
// replays and reorderings change nothing. The same revision again only moves
// Visible to the later of the two moments; a deleted document of that revision
// wins. Deleted documents leave the view, but their revisions are remembered, so
// that late changes do not restore them.
//
// The view keeps nothing of docs. A document of another schema is a mistake in the
// program: Apply panics.
func (v *View) Apply(docs []Document) {
	newest := v.schema.Newest(docs)
	if len(newest) == 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.table.apply(newest)
}

// Len returns how many documents there are, deleted ones not counted.
func (v *View) Len() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.table.live
}

// Bytes bounds the memory that the view takes, in bytes, and what queries may add.
func (v *View) Bytes() int64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.table.bytes()
}
