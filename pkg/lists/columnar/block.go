package columnar

import (
	"encoding/binary"
	"math/bits"
)

// A block is a chunk at rest: its rows without their text, those of deleted
// documents among them, which do not live.

const (
	blockDeleted = 1 << iota // some rows are of deleted documents
	blockSubs                // some subs are not 0
)

// The rows of a column that are null.
const (
	nullNone = iota
	nullSome
	nullAll
)

// dead returns the rows that do not live, or nil.
func (c *RowGroup) Deleted() *RowSet {
	if c.liveCount == c.Rows() {
		return nil
	}
	dead := AllRows(c.Rows())
	dead.Without(&c.Live)
	return dead
}

func AllRows(n int) *RowSet {
	full := new(RowSet)
	for w := range full {
		switch left := n - w*64; {
		case left >= 64:
			full[w] = ^uint64(0)
		case left > 0:
			full[w] = 1<<left - 1
		}
	}
	return full
}

// appendBlock writes a chunk that is not packed. The values of rows without one
// are set as the reader will find them.
func appendBlock(dst []byte, c *RowGroup) []byte {
	dead := c.Deleted()
	flags := byte(0)
	if dead != nil {
		flags |= blockDeleted
	}
	if c.Subs != nil {
		flags |= blockSubs
	}
	dst = append(dst, flags)
	if dead != nil {
		dst = appendRows(dst, dead, c.Rows())
	}
	dst, moments := appendIDs(dst, c.IDs)
	if c.Subs != nil {
		dst = append(dst, c.Subs...)
	}
	references := [][]int64{moments}
	for _, x := range []*Ints{&c.Revision, &c.Visible} {
		dst = appendNumbers(dst, x.Raw, nil, references)
		references = append(references, x.Raw)
	}
	for i, declared := range c.schema.columns {
		col := &c.Columns[i+1]
		switch declared.Type {
		case Keyword:
			dst = appendNumbers(dst, col.Values.Raw, dead, nil)
		case Bool:
			dst, _ = appendNulls(dst, col.Null, dead, c.Rows())
			truth := RowSet{}
			truth.Or(orEmpty(col.True))
			dst = appendRows(dst, &truth, c.Rows())
		case Number, Time:
			var skip *RowSet
			dst, skip = appendNulls(dst, col.Null, dead, c.Rows())
			dst = appendNumbers(dst, col.Values.Raw, skip, references)
			references = append(references, col.Values.Raw)
		}
	}
	return dst
}

func orEmpty(s *RowSet) *RowSet {
	if s == nil {
		return new(RowSet)
	}
	return s
}

// appendIDs writes ids as a column of their first halves, and plane by plane of
// the second, and returns the moments in the first 48 bits, where a UUID of
// version 7 has its milliseconds.
func appendIDs(dst []byte, ids [][16]byte) ([]byte, []int64) {
	high := make([]int64, len(ids))
	for i := range ids {
		high[i] = int64(binary.BigEndian.Uint64(ids[i][:]) ^ 1<<63)
	}
	dst = appendNumbers(dst, high, nil, nil)
	for b := 8; b < 16; b++ {
		for i := range ids {
			dst = append(dst, ids[i][b])
		}
	}
	return dst, momentsOf(high)
}

// momentsOf turns the first halves of ids, as a column has them, into moments.
func momentsOf(high []int64) []int64 {
	for i, v := range high {
		high[i] = int64((uint64(v) ^ 1<<63) >> 16)
	}
	return high
}

// appendNulls writes which living rows are null and returns all that have no
// value.
func appendNulls(dst []byte, absent, dead *RowSet, n int) ([]byte, *RowSet) {
	nulls := *orEmpty(absent)
	nulls.Without(dead)
	skip := nulls
	skip.Or(orEmpty(dead))
	switch {
	case nulls.Empty():
		return append(dst, nullNone), dead
	case skip == *AllRows(n):
		return append(dst, nullAll), &skip
	}
	return appendRows(append(dst, nullSome), &nulls, n), &skip
}

// appendRows writes a bit for each of n rows.
func appendRows(dst []byte, s *RowSet, n int) []byte {
	for i := range (n + 7) / 8 {
		dst = append(dst, byte(s[i/8]>>(i%8*8)))
	}
	return dst
}

// rows reads n bits; those beyond in the last byte must be 0.
func (r *reader) rows(n int) *RowSet {
	s := new(RowSet)
	for i, b := range r.take(uint64(n+7) / 8) {
		s[i/8] |= uint64(b) << (i % 8 * 8)
	}
	r.fail(n%64 != 0 && s[n/64]>>(n%64) != 0)
	return s
}

// blockReader reads the blocks of one segment.
type blockReader struct {
	schema *Schema
	used   [][]uint64 // by Col: which codes of a Keyword occur
	spans  []int64    // by Col: what its codes are less than
	last   Key        // of the block before
	some   bool       // there was one
	// Memory that is used for every block.
	columns [][]int64
	raw     []byte
}

// maxBlock is what a block of n rows takes at most.
func (s *Schema) maxBlock(n int) int {
	const column = 2 + binary.MaxVarintLen64
	return 1 + n + 17*n + (len(s.columns)+3)*(1+column+9*n)
}

// read returns the chunk of a block of n rows, which has no text.
func (b *blockReader) read(raw []byte, n int) (*RowGroup, bool) {
	r := &reader{data: raw}
	c := &RowGroup{
		schema: b.schema, Columns: make([]ColumnData, len(b.schema.columns)+1),
		Text: [2]TextRows{newTexts(), newTexts()}, Missing: b.schema.ColumnGroups() &^ SetOf(Core),
	}
	flags := r.byte()
	r.fail(flags&^(blockDeleted|blockSubs) != 0)
	c.Live = *AllRows(n)
	var dead *RowSet
	if flags&blockDeleted != 0 {
		dead = r.rows(n)
		r.fail(dead.Empty())
		c.Live.Without(dead)
	}
	c.liveCount = c.Live.Count()
	b.columns = b.columns[:0]
	b.readIDs(r, c, n, flags)
	references := b.columns[:1:1]
	for _, x := range []*Ints{&c.Revision, &c.Visible} {
		values := b.numbers(r, n, nil, references)
		references = append(references, values)
		*x = PackInts(values, nil)
	}
	for i := range b.schema.columns {
		references = b.readColumn(r, c, Col(i+1), n, dead, references)
	}
	return c, !r.bad && len(r.data) == 0
}

// numbers reads a column into memory that stays its own until the next block.
func (b *blockReader) numbers(r *reader, n int, skip *RowSet, references [][]int64) []int64 {
	at := len(b.columns)
	if at < cap(b.columns) {
		b.columns = b.columns[:at+1]
	} else {
		b.columns = append(b.columns, nil)
	}
	if b.columns[at] == nil {
		b.columns[at] = make([]int64, MaxRowGroup)
	}
	values := b.columns[at][:n]
	r.numbers(values, skip, references)
	return values
}

func (b *blockReader) readIDs(r *reader, c *RowGroup, n int, flags byte) {
	high := b.numbers(r, n, nil, nil)
	planes := r.take(uint64(8 * n))
	var subs []byte
	if flags&blockSubs != 0 {
		subs = r.take(uint64(n))
		r.fail(allZero(subs))
	}
	if r.bad {
		return
	}
	c.IDs = make([][16]byte, n)
	for i := range c.IDs {
		id := &c.IDs[i]
		binary.BigEndian.PutUint64(id[:8], uint64(high[i])^1<<63)
		for p := range 8 {
			id[8+p] = planes[p*n+i]
		}
	}
	if subs != nil {
		c.Subs = append(make([]uint8, 0, n), subs...)
	}
	for i := range n {
		k := c.Key(i)
		r.fail(b.some && b.last.Compare(k) >= 0)
		b.some, b.last = true, k
	}
	momentsOf(high)
}

func (b *blockReader) readColumn(r *reader, c *RowGroup, col Col, n int, dead *RowSet, references [][]int64) [][]int64 {
	column := &c.Columns[col]
	switch b.schema.Column(col).Type {
	case Keyword:
		codes := b.numbers(r, n, dead, nil)
		b.columns = b.columns[:len(b.columns)-1]
		if !r.bad {
			r.fail(!b.use(col, codes))
			column.Values = PackInts(codes, nil)
		}
	case Bool:
		skip := b.nulls(r, column, n, dead)
		truth := r.rows(n)
		if !r.bad && skip != nil {
			both := *truth
			both.And(skip)
			r.fail(!both.Empty())
		}
		if !truth.Empty() {
			column.True = truth
		}
	case Number, Time:
		skip := b.nulls(r, column, n, dead)
		values := b.numbers(r, n, skip, references)
		references = append(references, values)
		column.Values = PackInts(values, skip)
	}
	return references
}

// nulls reads which rows of a column are null and returns all that have no value.
func (b *blockReader) nulls(r *reader, c *ColumnData, n int, dead *RowSet) *RowSet {
	switch r.byte() {
	case nullNone:
		return dead
	case nullSome:
		nulls := r.rows(n)
		skip := *nulls
		skip.Or(orEmpty(dead))
		r.fail(nulls.Empty() || skip == *AllRows(n) || skip.Count() != nulls.Count()+orEmpty(dead).Count())
		c.Null = nulls
		return &skip
	case nullAll:
		r.fail(dead != nil && dead.Count() == n)
		c.Null = AllRows(n)
		return c.Null
	}
	r.fail(true)
	return nil
}

// use marks codes and says whether the column can have them.
func (b *blockReader) use(col Col, codes []int64) bool {
	span, used := uint64(b.spans[col]), b.used[col]
	for _, c := range codes {
		if uint64(c) >= span {
			return false
		}
		used[c>>6] |= 1 << (c & 63)
	}
	return true
}

func bitsSet(set []uint64) int {
	n := 0
	for _, w := range set {
		n += bits.OnesCount64(w)
	}
	return n
}
