package columnar

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// table is the content of a view: chunks, dictionaries, orderings, and the
// revisions of deleted documents.
type table struct {
	schema       *Schema
	groups       []*RowGroup // by slot; nil where one was evacuated
	free         []int    // slots of nil chunks
	tail         int      // slot of the chunk that takes rows, or noTail
	live         int
	dictionaries []*Dictionary // by Col, nil unless a Keyword
	tombstones         map[Key]int64 // revisions of deleted documents
	loads        int           // segments on their way in, with codes of the dictionaries

	building  sync.Mutex                 // held while a query adds an ordering
	orderings []atomic.Pointer[ordering] // by Col; that of ByID is always there
}

const noTail = -1

func newTable(s *Schema) *table {
	t := &table{
		schema: s, tail: noTail, tombstones: map[Key]int64{},
		dictionaries: make([]*Dictionary, len(s.columns)+1),
		orderings:    make([]atomic.Pointer[ordering], len(s.columns)+1),
	}
	for i, c := range s.columns {
		if c.Type == Keyword {
			t.dictionaries[i+1] = NewDictionary()
		}
	}
	t.orderings[ByID].Store(&ordering{col: ByID})
	return t
}

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
	live := make([]uint64, 0, len(t.groups)*rowWords)
	for _, c := range t.groups {
		rows := RowSet{}
		if c != nil {
			rows = c.Live
		}
		live = append(live, rows[:]...)
	}
	o := t.newOrdering(col, live, t.live)
	t.orderings[col].Store(o)
	return o
}

// lookup returns the place of a key in the order of ids, from a place at or before
// it, and whether the document is there. It is the first of as many as left.
func (t *table) lookup(from, left int, k Key) (int, bool) {
	ids := t.orderings[ByID].Load().sets[0]
	place := gallop(ids, from, left, func(o uint32) bool { return t.key(o).Compare(k) < 0 })
	return place, place < len(ids) && t.key(ids[place]) == k
}

// update is the newest of a batch's documents with one key.
type update struct {
	*Document
	visible int64
}

// apply takes updates in the order of their keys.
func (t *table) apply(updates []update) {
	var swaps []swap
	fresh := updates[:0]
	from, found := 0, false
	for i, u := range updates {
		if from, found = t.lookup(from, len(updates)-i, u.key()); found {
			o := t.orderings[ByID].Load().sets[0][from]
			if t.supersedes(u, o) {
				swaps = append(swaps, swap{o, nowhere})
				fresh = append(fresh, u)
			}
		} else if revision, deleted := t.tombstones[u.key()]; !deleted || u.Revision > revision {
			swaps = append(swaps, swap{nowhere, nowhere})
			fresh = append(fresh, u)
		}
	}
	t.add(fresh, swaps)
	t.reorder(swaps)
	t.rewrite()
	t.rewriteDictionaries()
}

// supersedes says whether an update takes the place of a live document. Where it
// only repeats the document's revision, the later of the two moments stays.
func (t *table) supersedes(u update, o uint32) bool {
	c, row := t.at(o)
	revision := c.Revision.At(row)
	if u.Revision == revision && !u.Deleted && u.visible > c.Visible.At(row) {
		c.Visible.set(row, u.visible)
	}
	return u.Revision > revision || u.Revision == revision && u.Deleted
}

// add appends the documents that are not deleted, remembers those that are, and
// completes the swaps.
func (t *table) add(updates []update, swaps []swap) {
	cells := make([]cell, len(t.schema.columns)+1)
	for i, u := range updates {
		if old := swaps[i].old; old != nowhere {
			c, row := t.at(old)
			c.markDead(row)
			t.live--
		}
		if u.Deleted {
			t.tombstones[u.key()] = u.Revision
			continue
		}
		delete(t.tombstones, u.key())
		u.split(cells)
		c := t.room()
		swaps[i].new = ordinal(t.tail, c.Rows())
		c.Append(u.Document, u.visible, cells, t.dictionaries)
		t.live++
	}
}

// split takes a document apart into its cells, by Col.
func (d *Document) split(cells []cell) {
	clear(cells)
	for values := d.values; len(values) > 0; {
		var c cell
		if c, values = nextCell(values); int(c.col) < len(cells) {
			cells[c.col] = c
		}
	}
}

// room returns the tail, a new one when it is full.
func (t *table) room() *RowGroup {
	if t.tail != noTail && t.groups[t.tail].Rows() < MaxRowGroup {
		return t.groups[t.tail]
	}
	if t.tail != noTail {
		t.groups[t.tail].seal()
	}
	c := NewRowGroup(t.schema)
	t.tail = t.place(c)
	return c
}

// place gives a chunk a slot.
func (t *table) place(c *RowGroup) (slot int) {
	if n := len(t.free); n > 0 {
		slot, t.free = t.free[n-1], t.free[:n-1]
		t.groups[slot] = c
		return slot
	}
	t.groups = append(t.groups, c)
	return len(t.groups) - 1
}

// reorder brings the orderings up to date. One that most of the documents are new
// to is cheaper to make again, when it is asked for.
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

// worn says that a chunk is to be evacuated: nothing in it is live, or a third of
// its rows are not, or it is one of few rows that came with a segment. While it
// lacks text, what is live cannot leave it.
func (t *table) needsRewrite(slot int) bool {
	c := t.groups[slot]
	dead := c.Rows() - c.liveCount
	switch {
	case c.liveCount == 0 && slot != t.tail:
		return true
	case c.Missing != 0:
		return false
	case slot != t.tail && c.Rows() < minLoadedRows:
		return true
	}
	return dead >= 64 && 3*dead > c.Rows()
}

// fewRows is for how many rows a chunk is not worth the memory and the steps of
// each query that it takes besides.
const minLoadedRows = 512

// evacuate moves what is live in worn chunks to the tail and drops them. It costs
// as much as adding those documents, at most twice as many as died.
func (t *table) rewrite() {
	var worn []int
	for slot, c := range t.groups {
		if c != nil && t.needsRewrite(slot) {
			worn = append(worn, slot)
			if slot == t.tail {
				t.tail = noTail
			}
		}
	}
	if len(worn) == 0 {
		return
	}
	moved := make([]*[MaxRowGroup]uint32, len(t.groups))
	for _, slot := range worn {
		moved[slot] = t.move(t.groups[slot])
	}
	for col := range t.orderings {
		if o := t.orderings[col].Load(); o != nil {
			for _, set := range o.sets {
				follow(set, moved)
			}
		}
	}
	for _, slot := range worn {
		t.groups[slot].release()
		t.groups[slot] = nil
	}
	t.free = append(t.free, worn...)
}

// release frees the memory of a chunk that the segment it came with may still
// point to.
func (c *RowGroup) release() {
	c.IDs, c.Subs, c.Columns, c.Text = nil, nil, nil, [2]TextRows{}
	c.cache.forget()
}

// move copies the live rows of a chunk to the tail and returns where they went.
func (t *table) move(c *RowGroup) *[MaxRowGroup]uint32 {
	to := new([MaxRowGroup]uint32)
	for w, word := range c.Live {
		for ; word != 0; word &= word - 1 {
			row := w<<6 + bits.TrailingZeros64(word)
			tail := t.room()
			to[row] = ordinal(t.tail, tail.Rows())
			tail.AppendRow(c, row)
		}
	}
	return to
}

func follow(set []uint32, moved []*[MaxRowGroup]uint32) {
	for i, o := range set {
		if slot := int(o >> rowShift); slot < len(moved) && moved[slot] != nil {
			set[i] = moved[slot][o&rowMask]
		}
	}
}

// recode drops the values of Keyword columns that no row has any more, once more
// than half of them may be such.
func (t *table) rewriteDictionaries() {
	if t.loads > 0 {
		return
	}
	for col, d := range t.dictionaries {
		if d == nil || !d.needsRewrite() {
			continue
		}
		used := make([]uint64, (d.Span()+63)/64)
		t.eachCode(col, func(code int64) int64 {
			used[code>>6] |= 1 << (code & 63)
			return code
		})
		if fresh, codes := d.without(used); fresh != nil {
			t.eachCode(col, func(code int64) int64 { return codes[code] })
			t.dictionaries[col] = fresh
		}
	}
}

// eachCode replaces the code of every row, live or not.
func (t *table) eachCode(col int, f func(int64) int64) {
	for slot, c := range t.groups {
		if c == nil {
			continue
		}
		fresh := newInts()
		fresh.Raw = make([]int64, 0, c.Rows())
		for row := range c.Rows() {
			fresh.append(f(c.Columns[col].Values.At(row)))
		}
		if slot != t.tail {
			fresh.pack()
		}
		c.Columns[col].Values = fresh
	}
}

func (t *table) bytes() int64 {
	n := 0
	for _, c := range t.groups {
		if c != nil {
			n += c.bytes()
		}
	}
	for _, d := range t.dictionaries {
		if d != nil {
			n += d.bytes()
		}
	}
	for col := range t.orderings {
		if o := t.orderings[col].Load(); o != nil {
			n += 4 * (cap(o.sets[0]) + cap(o.sets[1]))
		}
	}
	return int64(n + 8*cap(t.groups) + 64*len(t.tombstones) + 1024)
}

// newest returns the documents that count, in the order of their keys: of those
// with one key that of the highest revision; of the same revision a deleted one
// before others, visible from the latest of their moments.
func newest(docs []Document) []update {
	updates := make([]update, len(docs))
	for i := range docs {
		updates[i] = update{&docs[i], docs[i].Visible}
	}
	slices.SortStableFunc(updates, func(a, b update) int { return a.key().Compare(b.key()) })
	n := 0
	for _, u := range updates {
		if n == 0 || updates[n-1].key() != u.key() {
			updates[n] = u
			n++
			continue
		}
		last := &updates[n-1]
		switch {
		case u.Revision > last.Revision:
			*last = u
		case u.Revision == last.Revision:
			visible := max(u.visible, last.visible)
			if u.Deleted {
				*last = u
			}
			last.visible = visible
		}
	}
	return updates[:n]
}
