package columnar

import "slices"

// A load merges rows into a table in two phases, so that queries wait for the
// second, short one only:
//
//	         merge (changing is held)          commit (changing and mu are held)
//
//	queries ──► table ─────────────────────────► table
//	              │ reads                          ▲ dead rows, Visible, tombstones
//	              ▼                                │
//	            next: own orderings ─────────────► next ──► View.table ──► queries
//
// The two tables share row groups, dictionaries and tombstones. merge makes a table
// that is right once commit has changed what they share. Until then it only marks
// rows as dead that it has loaded itself: no query reads them.

// loadedRows are what merge adds to a table.
type loadedRows struct {
	groups     []*RowGroup
	ids        []uint32      // live rows in the order of keys, as ordinals in groups
	tombstones map[Key]int64 // revisions of deleted documents, none of which is live
}

// pendingMerge is the next table and what is left to commit.
type pendingMerge struct {
	next       *table
	removed    []uint32 // rows of the table that are superseded or deleted
	added      []uint32 // rows of next, in the order of keys
	later      []laterVisible
	tombstones map[Key]int64 // new ones
	revived    []Key         // tombstones that are superseded
}

// laterVisible is a row whose document turned out to be visible from a later moment.
type laterVisible struct {
	ordinal uint32
	visible int64
}

// merge prepares the next table, with the meaning of apply. The table must not
// change before the commit; merge takes possession of the rows.
func (t *table) merge(r loadedRows) *pendingMerge {
	next := newTable(t.schema)
	next.groups, next.free, next.tail = slices.Clone(t.groups), slices.Clone(t.free), t.tail
	next.dictionaries, next.tombstones = t.dictionaries, t.tombstones
	m := &pendingMerge{next: next, tombstones: r.tombstones}
	m.applyTombstones(t)
	deleted := len(m.removed)
	m.addGroups(r)
	m.mergeIDs(t)
	removed := next.bitsOf(m.removed)
	if deleted > 0 {
		ids := next.orderings[ByID].Load()
		ids.sets[0] = slices.DeleteFunc(ids.sets[0], func(o uint32) bool { return removed.Has(int(o)) })
	}
	next.live = t.live - len(m.removed) + len(m.added)
	m.mergeOrderings(t, removed)
	return m
}

// applyTombstones finds the rows that are deleted and drops the tombstones that are
// older than what the table knows.
func (m *pendingMerge) applyTombstones(t *table) {
	for k, revision := range m.tombstones {
		if at, found := t.lookup(0, 1, k); found {
			o := t.ids()[at]
			if g, row := t.at(o); g.Revision.At(row) > revision {
				delete(m.tombstones, k)
			} else {
				m.removed = append(m.removed, o)
			}
		} else if known, deleted := t.tombstones[k]; deleted && known >= revision {
			delete(m.tombstones, k)
		}
	}
}

// addGroups adds the row groups and keeps the rows that no tombstone of the table
// supersedes.
func (m *pendingMerge) addGroups(r loadedRows) {
	numbers := make([]int, len(r.groups))
	for i, g := range r.groups {
		numbers[i] = m.next.addGroup(g)
	}
	m.added = r.ids[:0]
	for _, o := range r.ids {
		g, row := r.groups[o>>rowShift], int(o&rowMask)
		if len(m.next.tombstones) > 0 {
			k := g.Key(row)
			if revision, deleted := m.next.tombstones[k]; deleted && revision >= g.Revision.At(row) {
				g.markDead(row)
				continue
			} else if deleted {
				m.revived = append(m.revived, k)
			}
		}
		m.added = append(m.added, ordinal(numbers[o>>rowShift], row))
	}
}

// mergeIDs makes the ordering by ID, with the newer of two documents of one key.
func (m *pendingMerge) mergeIDs(t *table) {
	old := t.ids()
	merged := make([]uint32, 0, len(old)+len(m.added))
	candidates := m.added
	m.added = candidates[:0]
	from := 0
	for i, o := range candidates {
		g, row := m.next.at(o)
		at, found := t.lookup(from, len(candidates)-i, g.Key(row))
		merged = append(merged, old[from:at]...)
		from = at
		if found {
			from++
			if !m.supersedes(o, old[at]) {
				g.markDead(row)
				merged = append(merged, old[at])
				continue
			}
			m.removed = append(m.removed, old[at])
		}
		merged = append(merged, o)
		m.added = append(m.added, o)
	}
	m.next.orderings[ByID].Store(&ordering{col: ByID, sets: [2][]uint32{append(merged, old[from:]...)}})
}

// supersedes says whether a row has a newer revision than another. Where it has the
// same, the later moment of the two stays.
func (m *pendingMerge) supersedes(o, known uint32) bool {
	g, row := m.next.at(o)
	k, knownRow := m.next.at(known)
	revision, old := g.Revision.At(row), k.Revision.At(knownRow)
	if visible := g.Visible.At(row); revision == old && visible > k.Visible.At(knownRow) {
		m.later = append(m.later, laterVisible{known, visible})
	}
	return revision > old
}

// mergeOrderings makes the orderings that the table has. Those to which most
// documents would be new, and those by text that some rows lack, are made again when
// a query asks for them.
func (m *pendingMerge) mergeOrderings(t *table, removed Bits) {
	next := m.next
	var added Bits
	for col := range t.orderings {
		o := t.orderings[col].Load()
		if o == nil || Col(col) == ByID || 2*len(m.added) > next.live || !next.hasText(Col(col)) {
			continue
		}
		if added == nil {
			added = next.bitsOf(m.added)
		}
		merged := next.newOrdering(Col(col), added, len(m.added))
		for half, set := range merged.sets {
			merged.sets[half] = next.mergeSets(Col(col), half, o.sets[half], set, removed)
		}
		next.orderings[col].Store(merged)
	}
}

// mergeSets merges two sorted sets, the first without the removed documents.
func (t *table) mergeSets(col Col, half int, set, added []uint32, removed Bits) []uint32 {
	merged := make([]uint32, 0, len(set)+len(added))
	keep := func(set []uint32) {
		for _, o := range set {
			if !removed.Has(int(o)) {
				merged = append(merged, o)
			}
		}
	}
	from := 0
	for i, o := range added {
		at := t.seek(col, half, set, from, len(added)-i, o)
		keep(set[from:at])
		merged = append(merged, o)
		from = at
	}
	keep(set[from:])
	return merged
}

func (t *table) bitsOf(ordinals []uint32) Bits {
	set := NewBits(len(t.groups) * MaxRowGroup)
	for _, o := range ordinals {
		set.Add(int(o))
	}
	return set
}

// commit changes what both tables share. Nobody may read either.
func (m *pendingMerge) commit() {
	for _, l := range m.later {
		g, row := m.next.at(l.ordinal)
		g.Visible.set(row, l.visible)
	}
	for _, o := range m.removed {
		g, row := m.next.at(o)
		g.markDead(row)
	}
	for k, revision := range m.tombstones {
		m.next.tombstones[k] = revision
	}
	for _, k := range m.revived {
		delete(m.next.tombstones, k)
	}
}
