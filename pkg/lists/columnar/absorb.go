package columnar

import "slices"

// run is what a table absorbs: chunks, their live rows in the order of keys, as
// ordinals by the places of the chunks, and the revisions of deleted documents, of
// which none is live.
type loadedRows struct {
	groups []*RowGroup
	ids    []uint32
	tombstones   map[Key]int64
}

func (g *Segment) run() loadedRows {
	r := loadedRows{groups: g.groups, ids: make([]uint32, 0, g.rows-g.tombstones), tombstones: make(map[Key]int64, g.tombstones)}
	for place, c := range g.groups {
		for row := range c.Rows() {
			if c.Live.Has(row) {
				r.ids = append(r.ids, ordinal(place, row))
			} else {
				r.tombstones[c.Key(row)] = c.Revision.At(row)
			}
		}
	}
	return r
}

// absorption is a table with a run in it, made beside the table, which queries go
// on reading, and what is left to do to what both share when the one takes the
// place of the other.
type pendingMerge struct {
	next    *table
	removed []uint32 // documents that go
	fresh   []uint32 // documents that come, in the order of keys
	raised  []raise
	tombstones  map[Key]int64
	revived []Key
}

// raise is a document that became visible later than it was known to.
type raise struct {
	ordinal uint32
	visible int64
}

// absorb prepares to take a run in, as apply takes updates. The table must not
// change until the absorption is settled; the run is used up.
func (t *table) merge(r loadedRows) *pendingMerge {
	a := &pendingMerge{next: t.beside()}
	t.applyTombstones(r.tombstones, a)
	buried := len(a.removed)
	a.placeRun(r, t.tombstones)
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
	next.groups, next.free, next.tail = slices.Clone(t.groups), slices.Clone(t.free), t.tail
	next.dictionaries, next.tombstones = t.dictionaries, t.tombstones
	return next
}

// bury finds what deletions change.
func (t *table) applyTombstones(gone map[Key]int64, a *pendingMerge) {
	a.tombstones = gone
	for k, revision := range gone {
		if place, found := t.lookup(0, 1, k); found {
			o := t.orderings[ByID].Load().sets[0][place]
			c, row := t.at(o)
			if c.Revision.At(row) > revision {
				delete(gone, k)
				continue
			}
			a.removed = append(a.removed, o)
		} else if was, deleted := t.tombstones[k]; deleted && was >= revision {
			delete(gone, k)
		}
	}
}

// placeRun gives the run's chunks their slots, and drops the documents that are
// known to be deleted.
func (a *pendingMerge) placeRun(r loadedRows, gone map[Key]int64) {
	slots := make([]int, len(r.groups))
	for i, c := range r.groups {
		slots[i] = a.next.place(c)
	}
	a.fresh = r.ids[:0]
	for _, o := range r.ids {
		c, row := r.groups[o>>rowShift], int(o&rowMask)
		if len(gone) > 0 {
			k := c.Key(row)
			if revision, deleted := gone[k]; deleted && revision >= c.Revision.At(row) {
				c.markDead(row)
				continue
			} else if deleted {
				a.revived = append(a.revived, k)
			}
		}
		a.fresh = append(a.fresh, ordinal(slots[o>>rowShift], row))
	}
}

// mergeIDs makes the ordering by ID, in which of two documents with one key the
// newer is left.
func (a *pendingMerge) mergeIDs(t *table) {
	old := t.orderings[ByID].Load().sets[0]
	merged := make([]uint32, 0, len(old)+len(a.fresh))
	candidates := a.fresh
	a.fresh = candidates[:0]
	from := 0
	for i, o := range candidates {
		c, row := a.next.at(o)
		place, found := t.lookup(from, len(candidates)-i, c.Key(row))
		merged = append(merged, old[from:place]...)
		from = place
		if found {
			from++
			if was := old[place]; !a.supersedes(o, was) {
				c.markDead(row)
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
func (a *pendingMerge) supersedes(o, was uint32) bool {
	c, row := a.next.at(o)
	w, wasRow := a.next.at(was)
	revision, held := c.Revision.At(row), w.Revision.At(wasRow)
	if visible := c.Visible.At(row); revision == held && visible > w.Visible.At(wasRow) {
		a.raised = append(a.raised, raise{was, visible})
	}
	return revision > held
}

func (t *table) bitsOf(ordinals []uint32) []uint64 {
	set := make([]uint64, len(t.groups)*rowWords)
	for _, o := range ordinals {
		set[o>>6] |= 1 << (o & 63)
	}
	return set
}

// order makes the orderings that the table has, except those that most documents
// would be new to, and those by text that some do not have: when they are asked
// for, they are made again.
func (a *pendingMerge) order(t *table, gone []uint64) {
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
func (a *pendingMerge) commit() {
	for _, r := range a.raised {
		c, row := a.next.at(r.ordinal)
		c.Visible.set(row, r.visible)
	}
	for _, o := range a.removed {
		c, row := a.next.at(o)
		c.markDead(row)
	}
	for k, revision := range a.tombstones {
		a.next.tombstones[k] = revision
	}
	for _, k := range a.revived {
		delete(a.next.tombstones, k)
	}
}
