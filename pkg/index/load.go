package index

import (
	"fmt"
)

// Load brings the documents of segments into the view, with the same meaning as
// Apply of them, at once for all. It is fast, because it takes the segments' own
// chunks; the view owns the segments from then on. Segments may lack groups of
// text: then queries that need them are to wait for Fill. It panics when a segment
// is of another schema or already in a view.
func (v *View) Load(segments ...*Segment) {
	rows := 0
	for _, g := range segments {
		if g.schema != v.schema {
			panic(fmt.Sprintf("index: Load: a segment of schema %s, want %s", g.schema.name, v.schema.name))
		}
		if g.view != nil {
			panic("index: Load: the segment is in a view")
		}
		g.view = v
		rows += g.rows
	}
	if rows == 0 {
		return
	}
	codes := v.reserve(segments)
	for i, g := range segments {
		g.recode(codes[i])
	}
	// What the segments are to one another is settled before anyone waits.
	r := segments[0].run()
	if len(segments) > 1 {
		t := newTable(v.schema)
		for _, g := range segments {
			t.absorb(g.run())
		}
		r = run{chunks: t.chunks, ids: t.orderings[ByID].Load().sets[0], gone: t.gone}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.table.absorb(r)
	v.table.loads--
	v.table.evacuate()
}

// reserve adds the values of segments to the dictionaries, which keep their codes
// until the chunks are in, and returns what the segments' codes become.
func (v *View) reserve(segments []*Segment) [][][]int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.table.loads++
	codes := make([][][]int64, len(segments))
	for i, g := range segments {
		codes[i] = make([][]int64, len(g.dictionaries))
		for col, d := range g.dictionaries {
			if d != nil {
				codes[i][col] = v.table.dictionaries[col].join(d)
			}
		}
	}
	return codes
}

// recode replaces the codes of all chunks; nil leaves a column as it is.
func (g *Segment) recode(codes [][]int64) {
	g.dictionaries = nil
	values := make([]int64, chunkRows)
	for col, to := range codes {
		if to == nil {
			continue
		}
		for _, c := range g.chunks {
			x := &c.columns[col].ints
			for row := range c.rows() {
				values[row] = to[x.at(row)]
			}
			*x = packed(values[:c.rows()], nil)
		}
	}
}

// run is what a table absorbs: chunks, their live rows in the order of keys, as
// ordinals by the places of the chunks, and the revisions of deleted documents.
type run struct {
	chunks []*chunk
	ids    []uint32
	gone   map[key]int64
}

func (g *Segment) run() run {
	r := run{chunks: g.chunks, ids: make([]uint32, 0, g.rows-g.tombstones), gone: make(map[key]int64, g.tombstones)}
	for place, c := range g.chunks {
		for row := range c.rows() {
			if c.live.has(row) {
				r.ids = append(r.ids, ordinal(place, row))
			} else {
				r.gone[c.key(row)] = c.revision.at(row)
			}
		}
	}
	return r
}

// absorb takes a run in, as apply takes updates. The chunks are the table's from
// then on.
func (t *table) absorb(r run) {
	t.bury(r.gone)
	t.dropGone(&r)
	slots := make([]int, len(r.chunks))
	for i, c := range r.chunks {
		slots[i] = t.place(c)
	}
	fresh := r.ids
	for i, o := range fresh {
		fresh[i] = ordinal(slots[o>>chunkShift], int(o&chunkMask))
	}
	swaps := t.mergeIDs(fresh)
	for col := range t.orderings {
		o := t.orderings[col].Load()
		switch {
		case o == nil || Col(col) == ByID:
		case 2*len(swaps) > t.live || !t.hasText(Col(col)):
			t.orderings[col].Store(nil)
		default:
			t.change(o, swaps)
		}
	}
}

// bury takes deletions in.
func (t *table) bury(gone map[key]int64) {
	var swaps []swap
	for k, revision := range gone {
		if place, found := t.lookup(0, 1, k); found {
			o := t.orderings[ByID].Load().sets[0][place]
			c, row := t.chunk(o)
			if c.revision.at(row) > revision {
				continue
			}
			c.kill(row)
			t.live--
			swaps = append(swaps, swap{o, nowhere})
		} else if was, deleted := t.gone[k]; deleted && was >= revision {
			continue
		}
		t.gone[k] = revision
	}
	if len(swaps) > 0 {
		t.reorder(swaps)
	}
}

// dropGone takes out of a run what the table knows to be deleted.
func (t *table) dropGone(r *run) {
	if len(t.gone) == 0 {
		return
	}
	ids := r.ids[:0]
	for _, o := range r.ids {
		c, row := r.chunks[o>>chunkShift], int(o&chunkMask)
		k := c.key(row)
		if revision, deleted := t.gone[k]; deleted {
			if revision >= c.revision.at(row) {
				c.kill(row)
				continue
			}
			delete(t.gone, k)
		}
		ids = append(ids, o)
	}
	r.ids = ids
}

// mergeIDs brings placed documents, in the order of keys, into the ordering by ID,
// and returns the swaps for the others. Of two documents with one key the newer
// stays live.
func (t *table) mergeIDs(fresh []uint32) []swap {
	byID := t.orderings[ByID].Load()
	old := byID.sets[0]
	merged := make([]uint32, 0, len(old)+len(fresh))
	swaps := make([]swap, 0, len(fresh))
	from := 0
	for i, o := range fresh {
		c, row := t.chunk(o)
		place, found := t.lookup(from, len(fresh)-i, c.key(row))
		merged = append(merged, old[from:place]...)
		from = place
		was := uint32(nowhere)
		if found {
			from++
			was = old[place]
			if !t.outdates(o, was) {
				c.kill(row)
				merged = append(merged, was)
				continue
			}
			oldChunk, oldRow := t.chunk(was)
			oldChunk.kill(oldRow)
		} else {
			t.live++
		}
		merged = append(merged, o)
		swaps = append(swaps, swap{was, o})
	}
	byID.sets[0] = append(merged, old[from:]...)
	return swaps
}

// outdates says whether a document takes the place of another. Where it only
// repeats that one's revision, the later of the two moments stays.
func (t *table) outdates(o, was uint32) bool {
	c, row := t.chunk(o)
	w, wasRow := t.chunk(was)
	revision, held := c.revision.at(row), w.revision.at(wasRow)
	if visible := c.visible.at(row); revision == held && visible > w.visible.at(wasRow) {
		w.visible.set(wasRow, visible)
	}
	return revision > held
}

// Fill gives a segment that is in the view a group of text; one that it has stays
// as it is. Queries go on while it decodes. Errors are as of Segment.Decode, and
// the view is as it was then. It panics when the segment is not in the view.
func (v *View) Fill(g *Segment, group Group, data []byte) error {
	if g.view != v {
		panic("index: Fill: the segment is not in this view")
	}
	blocks, err := g.decodeText(group, data)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if g.groups.Has(group) {
		return nil
	}
	for i, c := range g.chunks {
		// A chunk of which nothing was live may be gone.
		if c.rows() > 0 {
			blocks[i].give(c, int(group-SearchText))
		}
	}
	g.groups |= setOf(group)
	v.table.evacuate()
	return nil
}
