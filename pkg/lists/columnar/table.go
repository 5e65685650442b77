package columnar

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// table is the content of a view: row groups, dictionaries, orderings, and the
// revisions of deleted documents.
type table struct {
	schema       *Schema
	text         bool        // whether row groups have text
	groups       []*RowGroup // by number; nil where one was rewritten
	free         []int       // numbers without a row group
	tail         int         // number of the row group that takes rows, or noTail
	live         int
	dictionaries []*Dictionary // by Col, nil unless a Keyword
	tombstones   map[Key]int64 // revisions of deleted documents

	building  sync.Mutex                 // held while a query adds an ordering
	orderings []atomic.Pointer[ordering] // by Col; that of ByID is always there
}

const noTail = -1

func newTable(s *Schema, text bool) *table {
	t := &table{
		schema: s, text: text, tail: noTail, tombstones: map[Key]int64{}, dictionaries: NewDictionaries(s),
		orderings: make([]atomic.Pointer[ordering], len(s.columns)+1),
	}
	t.orderings[ByID].Store(&ordering{col: ByID})
	return t
}

// ids returns the live rows in the order of keys.
func (t *table) ids() []uint32 { return t.orderings[ByID].Load().sets[0] }

// ordering returns the documents in a column's order. The first query that asks
// for it pays for the sort.
func (t *table) ordering(col Col) *ordering {
	if o := t.orderings[col].Load(); o != nil {
		return o
	}
	t.building.Lock()
	defer t.building.Unlock()
	if o := t.orderings[col].Load(); o != nil {
		return o
	}
	live := make(Bits, len(t.groups)*rowWords)
	for n, g := range t.groups {
		if g != nil {
			copy(live[n*rowWords:], g.Live[:])
		}
	}
	o := t.newOrdering(col, live, t.live)
	t.orderings[col].Store(o)
	return o
}

// lookup returns where a key is in ids, or would be, and whether it is there. The
// caller has left keys to look up, of which this is the first, and knows that it is
// at from or behind it.
func (t *table) lookup(from, left int, k Key) (int, bool) {
	ids := t.ids()
	at := gallop(ids, from, left, func(o uint32) bool { return t.key(o).Compare(k) < 0 })
	return at, at < len(ids) && t.key(ids[at]) == k
}

// version is what decides which of two documents of one key counts.
type version struct {
	key               Key
	revision, visible int64
	deleted           bool
}

// apply takes documents of distinct keys in the order of their keys.
func (t *table) apply(docs []*Document) {
	var swaps []swap
	newer := docs[:0]
	from, found := 0, false
	for i, d := range docs {
		from, found = t.lookup(from, len(docs)-i, d.key())
		if old, counts := t.superseded(d.version(), from, found); counts {
			swaps = append(swaps, swap{old, nowhere})
			newer = append(newer, d)
		}
	}
	for i, d := range newer {
		if t.enter(d.version(), swaps[i].old); !d.Deleted {
			swaps[i].new = t.append(d)
		}
	}
	t.reorder(swaps)
	t.rewrite()
}

// superseded says whether a version counts, and which row, if any, it takes the place
// of. Its key was looked up.
func (t *table) superseded(v version, at int, found bool) (old uint32, counts bool) {
	if !found {
		revision, deleted := t.tombstones[v.key]
		return nowhere, !deleted || v.revision > revision
	}
	old = t.ids()[at]
	g, row := t.at(old)
	revision := g.Revision[row]
	if v.revision == revision && !v.deleted {
		g.Visible[row] = max(g.Visible[row], v.visible)
	}
	return old, v.revision > revision || v.revision == revision && v.deleted
}

// enter marks the old row, if any, as dead and counts the version in its place. A
// deleted one leaves a tombstone.
func (t *table) enter(v version, old uint32) {
	if old != nowhere {
		g, row := t.at(old)
		g.markDead(row)
		t.live--
	}
	if v.deleted {
		t.tombstones[v.key] = v.revision
		return
	}
	delete(t.tombstones, v.key)
	t.live++
}

// append appends a document and returns its row.
func (t *table) append(d *Document) uint32 {
	g := t.openGroup()
	g.Append(d, t.dictionaries)
	return ordinal(t.tail, g.Rows()-1)
}

// openGroup returns the row group at the tail, a new one when that is full.
func (t *table) openGroup() *RowGroup {
	if t.tail != noTail {
		if g := t.groups[t.tail]; g.Rows() < MaxRowGroup {
			return g
		}
		t.groups[t.tail].finish()
	}
	g := NewRowGroup(t.schema, t.text)
	t.tail = t.addGroup(g)
	return g
}

// addGroup gives a row group a number.
func (t *table) addGroup(g *RowGroup) (number int) {
	if n := len(t.free); n > 0 {
		number, t.free = t.free[n-1], t.free[:n-1]
		t.groups[number] = g
		return number
	}
	t.groups = append(t.groups, g)
	return len(t.groups) - 1
}

// reorder updates the orderings. One to which most of the documents are new is made again
// when a query asks for it.
func (t *table) reorder(swaps []swap) {
	for col := range t.orderings {
		o := t.orderings[col].Load()
		switch {
		case o == nil:
		case Col(col) != ByID && 2*len(swaps) > t.live:
			t.orderings[col].Store(nil)
		default:
			t.change(o, swaps)
		}
	}
}

// minLoadedRows is the least size of a loaded row group that is worth its memory and
// the steps that each query takes for it.
const minLoadedRows = 512

// needsRewrite says that a row group has no live row, or that a third of its rows
// are dead, or that it was loaded with few rows.
func (t *table) needsRewrite(number int) bool {
	g := t.groups[number]
	if number != t.tail && (g.liveCount == 0 || g.Rows() < minLoadedRows) {
		return true
	}
	dead := g.Rows() - g.liveCount
	return dead >= 64 && 3*dead > g.Rows()
}

// rewrite copies the live rows of row groups that need it to the tail and drops
// those. This costs as much as appending these documents, at most twice as many as
// have died.
func (t *table) rewrite() {
	var from []int
	for number, g := range t.groups {
		if g != nil && t.needsRewrite(number) {
			from = append(from, number)
			if number == t.tail {
				t.tail = noTail
			}
		}
	}
	if len(from) == 0 {
		return
	}
	var swaps []swap
	for _, number := range from {
		g := t.groups[number]
		for row := range g.Live.all() {
			d := g.Document(row, t.dictionaries)
			swaps = append(swaps, swap{ordinal(number, row), t.append(&d)})
		}
	}
	t.reorder(swaps)
	for _, number := range from {
		t.groups[number] = nil
	}
	t.free = append(t.free, from...)
}

// bytes is what the table takes, and what queries may add to it.
func (t *table) bytes() int64 {
	n := 8*cap(t.groups) + 64*len(t.tombstones) + 1024
	for _, g := range t.groups {
		if g != nil {
			n += g.bytes()
		}
	}
	for _, d := range t.dictionaries {
		if d != nil {
			n += d.bytes()
		}
	}
	return int64(n + t.schema.workMemory()*t.live)
}

// Newest returns the documents that count, in the order of their keys: of those with
// one key, that of the highest revision; of the same revision, a deleted one before
// others, visible from the latest of their moments. It panics when a document is of
// another schema.
func (s *Schema) Newest(docs []Document) []*Document {
	newest := make([]*Document, len(docs))
	for i := range docs {
		if newest[i] = &docs[i]; docs[i].schema != s {
			panic(fmt.Sprintf("index: document %x is not of schema %s", docs[i].ID, s.name))
		}
	}
	slices.SortStableFunc(newest, func(a, b *Document) int { return a.key().Compare(b.key()) })
	n := 0
	for _, d := range newest {
		if n == 0 || newest[n-1].key() != d.key() {
			newest[n] = d
			n++
		} else if last := newest[n-1]; d.Revision > last.Revision {
			newest[n-1] = d
		} else if d.Revision == last.Revision {
			joined := *last
			if d.Deleted {
				joined = *d
			}
			joined.Visible = max(d.Visible, last.Visible)
			newest[n-1] = &joined
		}
	}
	return newest[:n]
}
