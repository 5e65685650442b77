package columnar

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// ordering holds the live documents in the ascending order of one column: those
// with a value by value and then key, and the others, which come last in both
// directions, by key.
type ordering struct {
	col  Col
	sets [2][]uint32 // with a value, without
}

// ordinal is the number of a row group in its table, and a row.
func ordinal(group, row int) uint32 { return uint32(group)<<rowShift | uint32(row) }

func (t *table) at(o uint32) (*RowGroup, int) { return t.groups[o>>rowShift], int(o & rowMask) }

func (t *table) key(o uint32) Key {
	c, row := t.at(o)
	return c.Key(row)
}

func (t *table) isText(col Col) bool { return col != ByID && t.schema.Column(col).Type == Text }

// half says in which of an ordering's sets a document is.
func (t *table) half(col Col, o uint32) int {
	if col == ByID {
		return 0
	}
	c, row := t.at(o)
	if c.null(col, row) {
		return 1
	}
	return 0
}

// compare orders documents of the same half.
func (t *table) compare(col Col, half int, a, b uint32) int {
	ca, ra := t.at(a)
	cb, rb := t.at(b)
	if col != ByID && half == 0 {
		if d := t.compareValues(col, ca, ra, cb, rb); d != 0 {
			return d
		}
	}
	return ca.Key(ra).Compare(cb.Key(rb))
}

func (t *table) compareValues(col Col, ca *RowGroup, ra int, cb *RowGroup, rb int) int {
	if t.isText(col) {
		a, _ := ca.text(col, ra)
		b, _ := cb.text(col, rb)
		return bytes.Compare(a, b)
	}
	return cmp.Compare(ca.Columns[col].Values.At(ra), cb.Columns[col].Values.At(rb))
}

// newOrdering orders the documents whose bits are set, of which there are count.
func (t *table) newOrdering(col Col, members Bits, count int) *ordering {
	o := &ordering{col: col}
	halves := [2][]sortItem{make([]sortItem, 0, count)}
	for n := range members.all() {
		d := uint32(n)
		h := t.half(col, d)
		halves[h] = append(halves[h], sortItem{ordinal: d})
	}
	t.sortItems(col, halves[0], 0)
	t.sortItems(ByID, halves[1], 0)
	for h, entries := range halves {
		o.sets[h] = make([]uint32, len(entries))
		for i, e := range entries {
			o.sets[h][i] = e.ordinal
		}
	}
	return o
}

// entry is a document being sorted, with the next part of its value as a number:
// numbers compare without going to the chunks.
type sortItem struct {
	part    uint64
	ordinal uint32
}

// sortEntries sorts by the depth-th part of the values, and what is equal in it by
// the parts after it.
func (t *table) sortItems(col Col, entries []sortItem, depth int) {
	for i := range entries {
		entries[i].part = t.part(col, entries[i].ordinal, depth)
	}
	radixSort(entries)
	isText := t.isText(col)
	for i, j := 0, 0; i < len(entries); i = j {
		for j = i + 1; j < len(entries) && entries[j].part == entries[i].part; j++ {
		}
		run := entries[i:j]
		switch {
		case len(run) == 1:
		case isText && entries[i].part&0xff == more:
			t.sortItems(col, run, depth+1)
		default:
			slices.SortFunc(run, func(a, b sortItem) int { return t.key(a.ordinal).Compare(t.key(b.ordinal)) })
		}
	}
}

// sortParts sorts by the parts.
func radixSort(entries []sortItem) {
	if len(entries) < minRadixSort {
		slices.SortFunc(entries, func(a, b sortItem) int { return cmp.Compare(a.part, b.part) })
		return
	}
	// A pass for each byte of the parts in which they are not all the same, from the
	// lowest up, puts the entries in order of that byte.
	var counts [8][256]uint32
	last, sorted := uint64(0), true
	for i := range entries {
		part := entries[i].part
		sorted = sorted && part >= last
		last = part
		for b := range counts {
			counts[b][byte(part>>(8*b))]++
		}
	}
	if sorted {
		return
	}
	from, to := entries, make([]sortItem, len(entries))
	for b := range counts {
		count := &counts[b]
		if count[byte(last>>(8*b))] == uint32(len(entries)) {
			continue
		}
		next := uint32(0)
		for v, n := range count {
			count[v] = next
			next += n
		}
		for i := range from {
			v := byte(from[i].part >> (8 * b))
			to[count[v]] = from[i]
			count[v]++
		}
		from, to = to, from
	}
	if &from[0] != &entries[0] {
		copy(entries, from)
	}
}

// manyEntries is from how many on the passes take less time than comparing.
const minRadixSort = 512

// partBytes is how many bytes of a text a part holds; its last byte is how many
// of them the text had, or more.
const (
	partBytes = 7
	more      = partBytes + 1
)

func (t *table) part(col Col, o uint32, depth int) uint64 {
	c, row := t.at(o)
	switch {
	case col == ByID:
		return binary.BigEndian.Uint64(c.IDs[row][:])
	case !t.isText(col):
		return uint64(c.Columns[col].Values.At(row)) ^ 1<<63
	}
	value, _ := c.text(col, row)
	value = value[min(partBytes*depth, len(value)):]
	var b [8]byte
	b[7] = byte(copy(b[:partBytes], value))
	if len(value) > partBytes {
		b[7] = more
	}
	return binary.BigEndian.Uint64(b[:])
}

// sorted sorts a few ordinals of one half.
func (t *table) sorted(col Col, half int, ordinals []uint32) []uint32 {
	slices.SortFunc(ordinals, func(a, b uint32) int { return t.compare(col, half, a, b) })
	return ordinals
}

// swap is a change of one document: its old ordinal and its new one, or nowhere.
type swap struct{ old, new uint32 }

const nowhere = math.MaxUint32

// change follows swaps. The rows of the old ordinals must still be there. Where a
// document keeps its place, because this column did not change, nothing moves.
func (t *table) change(o *ordering, swaps []swap) {
	var stay [2][]swap
	var gone, fresh [2][]uint32
	for _, s := range swaps {
		from, to := -1, -1
		if s.old != nowhere {
			from = t.half(o.col, s.old)
		}
		if s.new != nowhere {
			to = t.half(o.col, s.new)
		}
		if from >= 0 && from == to && t.compare(o.col, from, s.old, s.new) == 0 {
			stay[from] = append(stay[from], s)
			continue
		}
		if from >= 0 {
			gone[from] = append(gone[from], s.old)
		}
		if to >= 0 {
			fresh[to] = append(fresh[to], s.new)
		}
	}
	for h, set := range o.sets {
		t.exchange(o.col, h, set, stay[h])
		set = t.cut(o.col, h, set, t.sorted(o.col, h, gone[h]))
		o.sets[h] = t.splice(o.col, h, set, t.sorted(o.col, h, fresh[h]))
	}
}

// exchange puts new ordinals in the places of the old.
func (t *table) exchange(col Col, half int, set []uint32, swaps []swap) {
	slices.SortFunc(swaps, func(a, b swap) int { return t.compare(col, half, a.old, b.old) })
	from := 0
	for i, s := range swaps {
		from = t.seek(col, half, set, from, len(swaps)-i, s.old)
		set[from] = s.new
	}
}

// cut removes sorted members from a sorted set, in place.
func (t *table) cut(col Col, half int, set, gone []uint32) []uint32 {
	if len(gone) == 0 {
		return set
	}
	read := t.seek(col, half, set, 0, len(gone), gone[0])
	write := read
	for i := range gone {
		read++
		next := len(set)
		if i+1 < len(gone) {
			next = t.seek(col, half, set, read, len(gone)-i-1, gone[i+1])
		}
		write += copy(set[write:], set[read:next])
		read = next
	}
	return set[:write]
}

// splice adds sorted documents to a sorted set, in place where it has room.
func (t *table) splice(col Col, half int, set, fresh []uint32) []uint32 {
	if len(fresh) == 0 {
		return set
	}
	places := make([]int, len(fresh))
	from := 0
	for i, d := range fresh {
		from = t.seek(col, half, set, from, len(fresh)-i, d)
		places[i] = from
	}
	old := len(set)
	set = slices.Grow(set, len(fresh))[:old+len(fresh)]
	for i, end := len(fresh)-1, old; i >= 0; i-- {
		copy(set[places[i]+i+1:], set[places[i]:end])
		set[places[i]+i] = fresh[i]
		end = places[i]
	}
	return set
}

// seek returns the first place from on whose document is not before d; d is the
// first of as many as left to be sought.
func (t *table) seek(col Col, half int, set []uint32, from, left int, d uint32) int {
	c, row := t.at(d)
	k := c.Key(row)
	var order func(c *RowGroup, row int) int
	switch {
	case col == ByID || half == 1:
		order = func(*RowGroup, int) int { return 0 }
	case t.isText(col):
		value, _ := c.text(col, row)
		order = func(c *RowGroup, row int) int {
			v, _ := c.text(col, row)
			return bytes.Compare(v, value)
		}
	default:
		value := c.Columns[col].Values.At(row)
		order = func(c *RowGroup, row int) int { return cmp.Compare(c.Columns[col].Values.At(row), value) }
	}
	return gallop(set, from, left, func(o uint32) bool {
		c, row := t.at(o)
		if d := order(c, row); d != 0 {
			return d < 0
		}
		return c.Key(row).Compare(k) < 0
	})
}

// gallop returns the first place from on of which before does not hold. The first
// step is as long as the way to the first of as many as left evenly spread.
func gallop(set []uint32, from, left int, before func(o uint32) bool) int {
	lo, hi := from, len(set)
	step := (hi - lo) / (left + 1)
	for at := lo + step; at < hi; at += step {
		if !before(set[at]) {
			hi = at
			break
		}
		lo = at + 1
		step = 2*step + 1
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if before(set[mid]) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
