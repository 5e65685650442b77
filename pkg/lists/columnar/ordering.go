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
	g, row := t.at(o)
	return g.Keys[row]
}

// half says in which of an ordering's sets a document is.
func (t *table) half(col Col, o uint32) int {
	if g, row := t.at(o); col != ByID && g.null(col, row) {
		return 1
	}
	return 0
}

// compare orders documents of the same half.
func (t *table) compare(col Col, half int, a, b uint32) int {
	ga, ra := t.at(a)
	gb, rb := t.at(b)
	d := 0
	switch {
	case col == ByID || half == 1:
	case t.schema.isText(col):
		va, _ := ga.text(col, ra)
		vb, _ := gb.text(col, rb)
		d = bytes.Compare(va, vb)
	default:
		d = cmp.Compare(ga.Columns[col].Numbers[ra], gb.Columns[col].Numbers[rb])
	}
	if d != 0 {
		return d
	}
	return ga.Keys[ra].Compare(gb.Keys[rb])
}

// newOrdering orders the documents whose bits are set, of which there are count.
func (t *table) newOrdering(col Col, members Bits, count int) *ordering {
	o := &ordering{col: col}
	items := make([]sortItem, 0, count)
	for n := range members.all() {
		if d := uint32(n); t.half(col, d) == 0 {
			items = append(items, sortItem{ordinal: d})
		} else {
			o.sets[1] = append(o.sets[1], d)
		}
	}
	t.sortItems(col, items, 0)
	o.sets[0] = make([]uint32, len(items))
	for i, e := range items {
		o.sets[0][i] = e.ordinal
	}
	t.sorted(ByID, 1, o.sets[1])
	return o
}

// sortItem is a document being sorted, with the next bytes of its value as a number:
// numbers compare without a look at the row groups.
type sortItem struct {
	prefix  uint64
	ordinal uint32
}

// sortItems sorts by the depth-th prefix of the values, and items that are equal in it
// by those after it.
func (t *table) sortItems(col Col, items []sortItem, depth int) {
	for i := range items {
		items[i].prefix = t.prefix(col, items[i].ordinal, depth)
	}
	slices.SortFunc(items, func(a, b sortItem) int { return cmp.Compare(a.prefix, b.prefix) })
	isText := t.schema.isText(col)
	for i, j := 0, 0; i < len(items); i = j {
		for j = i + 1; j < len(items) && items[j].prefix == items[i].prefix; j++ {
		}
		run := items[i:j]
		switch {
		case len(run) == 1:
		case isText && items[i].prefix&0xff == more:
			t.sortItems(col, run, depth+1)
		default:
			slices.SortFunc(run, func(a, b sortItem) int { return t.key(a.ordinal).Compare(t.key(b.ordinal)) })
		}
	}
}

// prefixBytes is how many bytes of a text a prefix has; its last byte is how many of
// them the text has, or more.
const (
	prefixBytes = 7
	more        = prefixBytes + 1
)

func (t *table) prefix(col Col, o uint32, depth int) uint64 {
	g, row := t.at(o)
	switch {
	case col == ByID:
		return binary.BigEndian.Uint64(g.Keys[row].ID[:])
	case !t.schema.isText(col):
		return uint64(g.Columns[col].Numbers[row]) ^ 1<<63
	}
	value, _ := g.text(col, row)
	value = value[min(prefixBytes*depth, len(value)):]
	var b [8]byte
	b[7] = byte(copy(b[:prefixBytes], value))
	if len(value) > prefixBytes {
		b[7] = more
	}
	return binary.BigEndian.Uint64(b[:])
}

// sorted sorts a few ordinals of one half.
func (t *table) sorted(col Col, half int, ordinals []uint32) []uint32 {
	slices.SortFunc(ordinals, func(a, b uint32) int { return t.compare(col, half, a, b) })
	return ordinals
}

// swap is a change of one document: its old row and its new one, or nowhere.
type swap struct{ old, new uint32 }

const nowhere = math.MaxUint32

// change updates an ordering. The old rows must still be there. A document whose value
// in this column did not change keeps its position.
func (t *table) change(o *ordering, swaps []swap) {
	old, becomes := make(Bits, len(t.groups)*rowWords), map[uint32]uint32{}
	var fresh [2][]uint32
	for _, s := range swaps {
		if s.old != nowhere {
			old.Add(int(s.old))
			becomes[s.old] = nowhere
		}
		if s.new == nowhere {
			continue
		}
		half := t.half(o.col, s.new)
		if s.old != nowhere && half == t.half(o.col, s.old) && t.compare(o.col, half, s.old, s.new) == 0 {
			becomes[s.old] = s.new
		} else {
			fresh[half] = append(fresh[half], s.new)
		}
	}
	for half, set := range o.sets {
		kept := set[:0]
		for _, d := range set {
			if old.Has(int(d)) {
				d = becomes[d]
			}
			if d != nowhere {
				kept = append(kept, d)
			}
		}
		o.sets[half] = t.splice(o.col, half, kept, t.sorted(o.col, half, fresh[half]))
	}
}

// splice adds sorted documents to a sorted set, in place where it has room.
func (t *table) splice(col Col, half int, set, fresh []uint32) []uint32 {
	if len(fresh) == 0 {
		return set
	}
	positions := make([]int, len(fresh))
	from := 0
	for i, d := range fresh {
		from = gallop(set, from, len(fresh)-i, func(o uint32) bool { return t.compare(col, half, o, d) < 0 })
		positions[i] = from
	}
	old := len(set)
	set = slices.Grow(set, len(fresh))[:old+len(fresh)]
	for i, end := len(fresh)-1, old; i >= 0; i-- {
		copy(set[positions[i]+i+1:], set[positions[i]:end])
		set[positions[i]+i] = fresh[i]
		end = positions[i]
	}
	return set
}

// gallop returns the first position from on for which before is false. Its first step
// is as long as it is to the first of left documents that are spread evenly.
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
