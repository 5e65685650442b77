package index

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// ordering holds the live documents in the ascending order of one column: those
// with a value by value and then key, and the others, which come last in both
// directions, by key.
type ordering struct {
	col  Col
	sets [2][]uint32 // with a value, without
}

// A document's ordinal is its chunk's place and its row.
func ordinal(slot, row int) uint32 { return uint32(slot)<<chunkShift | uint32(row) }

func (t *table) chunk(o uint32) (*chunk, int) { return t.chunks[o>>chunkShift], int(o & chunkMask) }

func (t *table) key(o uint32) key {
	c, row := t.chunk(o)
	return c.key(row)
}

// half says in which of an ordering's sets a document is.
func (t *table) half(col Col, o uint32) int {
	if col == ByID {
		return 0
	}
	c, row := t.chunk(o)
	if c.null(col, row) {
		return 1
	}
	return 0
}

// compare orders documents of the same half.
func (t *table) compare(col Col, half int, a, b uint32) int {
	ca, ra := t.chunk(a)
	cb, rb := t.chunk(b)
	if col != ByID && half == 0 {
		if d := t.compareValues(col, ca, ra, cb, rb); d != 0 {
			return d
		}
	}
	return ca.key(ra).compare(cb.key(rb))
}

func (t *table) compareValues(col Col, ca *chunk, ra int, cb *chunk, rb int) int {
	if t.schema.column(col).Type == Text {
		a, _ := ca.text(col, ra)
		b, _ := cb.text(col, rb)
		return slices.Compare(a, b)
	}
	return cmp.Compare(ca.columns[col].ints.at(ra), cb.columns[col].ints.at(rb))
}

// newOrdering orders all live documents.
func (t *table) newOrdering(col Col) *ordering {
	o := &ordering{col: col}
	var entries []entry
	for slot, c := range t.chunks {
		if c == nil {
			continue
		}
		for w, word := range c.live {
			for ; word != 0; word &= word - 1 {
				row := w<<6 + bits.TrailingZeros64(word)
				if c.null(col, row) {
					o.sets[1] = append(o.sets[1], ordinal(slot, row))
				} else {
					entries = append(entries, entry{ordinal: ordinal(slot, row)})
				}
			}
		}
	}
	t.sortEntries(col, entries, 0)
	o.sets[0] = make([]uint32, len(entries))
	for i, e := range entries {
		o.sets[0][i] = e.ordinal
	}
	o.sets[1] = t.sorted(col, 1, o.sets[1])
	return o
}

// entry is a document being sorted, with the next part of its value as a number:
// numbers compare without going to the chunks.
type entry struct {
	part    uint64
	ordinal uint32
}

// sortEntries sorts by the depth-th part of the values, and what is equal in it by
// the parts after it.
func (t *table) sortEntries(col Col, entries []entry, depth int) {
	for i := range entries {
		entries[i].part = t.part(col, entries[i].ordinal, depth)
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.part, b.part) })
	isText := t.schema.column(col).Type == Text
	for i, j := 0, 0; i < len(entries); i = j {
		for j = i + 1; j < len(entries) && entries[j].part == entries[i].part; j++ {
		}
		run := entries[i:j]
		switch {
		case len(run) == 1:
		case isText && entries[i].part&0xff == more:
			t.sortEntries(col, run, depth+1)
		default:
			slices.SortFunc(run, func(a, b entry) int { return t.key(a.ordinal).compare(t.key(b.ordinal)) })
		}
	}
}

// partBytes is how many bytes of a text a part holds; its last byte is how many
// of them the text had, or more.
const (
	partBytes = 7
	more      = partBytes + 1
)

func (t *table) part(col Col, o uint32, depth int) uint64 {
	c, row := t.chunk(o)
	if t.schema.column(col).Type != Text {
		return uint64(c.columns[col].ints.at(row)) ^ 1<<63
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

// change takes documents out of an ordering and puts others in. The rows of those
// taken out must still be there.
func (t *table) change(o *ordering, gone, fresh []uint32) {
	var halves [2]struct{ gone, fresh []uint32 }
	for _, d := range gone {
		h := t.half(o.col, d)
		halves[h].gone = append(halves[h].gone, d)
	}
	for _, d := range fresh {
		h := t.half(o.col, d)
		halves[h].fresh = append(halves[h].fresh, d)
	}
	for h := range halves {
		set := t.cut(o.col, h, o.sets[h], t.sorted(o.col, h, halves[h].gone))
		o.sets[h] = t.splice(o.col, h, set, t.sorted(o.col, h, halves[h].fresh))
	}
}

// cut removes sorted members from a sorted set, in place.
func (t *table) cut(col Col, half int, set, gone []uint32) []uint32 {
	if len(gone) == 0 {
		return set
	}
	read := t.seek(col, half, set, 0, gone[0])
	write := read
	for i := range gone {
		read++
		next := len(set)
		if i+1 < len(gone) {
			next = t.seek(col, half, set, read, gone[i+1])
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
		from = t.seek(col, half, set, from, d)
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

// seek returns the first place from on whose document is not before d.
func (t *table) seek(col Col, half int, set []uint32, from int, d uint32) int {
	return gallop(set, from, func(o uint32) bool { return t.compare(col, half, o, d) < 0 })
}

// gallop returns the first place from on of which before does not hold. It looks
// near from first, so that many of them in order cost less than a search each.
func gallop(set []uint32, from int, before func(o uint32) bool) int {
	lo, hi := from, from
	for step := 1; hi < len(set) && before(set[hi]); step *= 2 {
		lo = hi + 1
		hi += step
	}
	hi = min(hi, len(set))
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
