package columnar

import "slices"

// run is what a table absorbs: chunks, their live rows in the order of keys, as
// ordinals by the places of the chunks, and the revisions of deleted documents, of
// which none is live.
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

// absorption is a table with a run in it, made beside the table, which queries go
// on reading, and what is left to do to what both share when the one takes the
// place of the other.
type absorption struct {
	next    *table
	removed []uint32 // documents that go
	fresh   []uint32 // documents that come, in the order of keys
	raised  []raise
	buried  map[key]int64
	revived []key
}

// raise is a document that became visible later than it was known to.
type raise struct {
	ordinal uint32
	visible int64
}

// absorb prepares to take a run in, as apply takes updates. The table must not
// change until the absorption is settled; the run is used up.
func (t *table) absorb(r run) *absorption {
	a := &absorption{next: t.beside()}
	t.bury(r.gone, a)
	buried := len(a.removed)
	a.placeRun(r, t.gone)
	a.mergeIDs(t)
	gone := a.next.bitsOf(a.removed)
	if buried > 0 {
		ids := a.next.orderings[ByID].Load()
		ids.sets[0] = slices.DeleteFunc(ids.sets[0], func(o uint32) bool { return isHit(gone, o) })
	}
	a.next.live = t.live - len(a.removed) + len(a.fresh)
	a.order(t, gone)
	return a
}

// beside returns a table with the same chunks and without orderings.
func (t *table) beside() *table {
	next := newTable(t.schema)
	next.chunks, next.free, next.tail = slices.Clone(t.chunks), slices.Clone(t.free), t.tail
	next.dictionaries, next.gone = t.dictionaries, t.gone
	return next
}

// bury finds what deletions change.
func (t *table) bury(gone map[key]int64, a *absorption) {
	a.buried = gone
	for k, revision := range gone {
		if place, found := t.lookup(0, 1, k); found {
			o := t.orderings[ByID].Load().sets[0][place]
			c, row := t.chunk(o)
			if c.revision.at(row) > revision {
				delete(gone, k)
				continue
			}
			a.removed = append(a.removed, o)
		} else if was, deleted := t.gone[k]; deleted && was >= revision {
			delete(gone, k)
		}
	}
}

// placeRun gives the run's chunks their slots, and drops the documents that are
// known to be deleted.
func (a *absorption) placeRun(r run, gone map[key]int64) {
	slots := make([]int, len(r.chunks))
	for i, c := range r.chunks {
		slots[i] = a.next.place(c)
	}
	a.fresh = r.ids[:0]
	for _, o := range r.ids {
		c, row := r.chunks[o>>chunkShift], int(o&chunkMask)
		if len(gone) > 0 {
			k := c.key(row)
			if revision, deleted := gone[k]; deleted && revision >= c.revision.at(row) {
				c.kill(row)
				continue
			} else if deleted {
				a.revived = append(a.revived, k)
			}
		}
		a.fresh = append(a.fresh, ordinal(slots[o>>chunkShift], row))
	}
}

// mergeIDs makes the ordering by ID, in which of two documents with one key the
// newer is left.
func (a *absorption) mergeIDs(t *table) {
	old := t.orderings[ByID].Load().sets[0]
	merged := make([]uint32, 0, len(old)+len(a.fresh))
	candidates := a.fresh
	a.fresh = candidates[:0]
	from := 0
	for i, o := range candidates {
		c, row := a.next.chunk(o)
		place, found := t.lookup(from, len(candidates)-i, c.key(row))
		merged = append(merged, old[from:place]...)
		from = place
		if found {
			from++
			if was := old[place]; !a.outdates(o, was) {
				c.kill(row)
				merged = append(merged, was)
				continue
			}
			a.removed = append(a.removed, old[place])
		}
		merged = append(merged, o)
		a.fresh = append(a.fresh, o)
	}
	a.next.orderings[ByID].Store(&ordering{col: ByID, sets: [2][]uint32{append(merged, old[from:]...)}})
}

// outdates says whether a document takes the place of another. Where it only
// repeats that one's revision, the later of the two moments stays.
func (a *absorption) outdates(o, was uint32) bool {
	c, row := a.next.chunk(o)
	w, wasRow := a.next.chunk(was)
	revision, held := c.revision.at(row), w.revision.at(wasRow)
	if visible := c.visible.at(row); revision == held && visible > w.visible.at(wasRow) {
		a.raised = append(a.raised, raise{was, visible})
	}
	return revision > held
}

func (t *table) bitsOf(ordinals []uint32) []uint64 {
	set := make([]uint64, len(t.chunks)*chunkWords)
	for _, o := range ordinals {
		set[o>>6] |= 1 << (o & 63)
	}
	return set
}

// order makes the orderings that the table has, except those that most documents
// would be new to, and those by text that some do not have: when they are asked
// for, they are made again.
func (a *absorption) order(t *table, gone []uint64) {
	var members []uint64
	for col := range t.orderings {
		o := t.orderings[col].Load()
		if o == nil || Col(col) == ByID || 2*len(a.fresh) > a.next.live || !a.next.hasText(Col(col)) {
			continue
		}
		if members == nil {
			members = a.next.bitsOf(a.fresh)
		}
		fresh := a.next.newOrdering(Col(col), members, len(a.fresh))
		next := &ordering{col: Col(col)}
		for h := range next.sets {
			next.sets[h] = a.next.weave(Col(col), h, o.sets[h], fresh.sets[h], gone)
		}
		a.next.orderings[col].Store(next)
	}
}

// weave merges two sorted sets, of the first without what is gone.
func (t *table) weave(col Col, half int, set, fresh []uint32, gone []uint64) []uint32 {
	woven := make([]uint32, 0, len(set)+len(fresh))
	from := 0
	for i, d := range fresh {
		place := t.seek(col, half, set, from, len(fresh)-i, d)
		woven = append(appendStaying(woven, set[from:place], gone), d)
		from = place
	}
	return appendStaying(woven, set[from:], gone)
}

func appendStaying(dst, set []uint32, gone []uint64) []uint32 {
	for _, o := range set {
		if !isHit(gone, o) {
			dst = append(dst, o)
		}
	}
	return dst
}

// settle changes what both tables share. Nobody may read either.
func (a *absorption) settle() {
	for _, r := range a.raised {
		c, row := a.next.chunk(r.ordinal)
		c.visible.set(row, r.visible)
	}
	for _, o := range a.removed {
		c, row := a.next.chunk(o)
		c.kill(row)
	}
	for k, revision := range a.buried {
		a.next.gone[k] = revision
	}
	for _, k := range a.revived {
		delete(a.next.gone, k)
	}
}
