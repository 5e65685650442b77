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
func (c *chunk) dead() *rowset {
	if c.liveCount == c.rows() {
		return nil
	}
	dead := fullRows(c.rows())
	dead.without(&c.live)
	return dead
}

func fullRows(n int) *rowset {
	full := new(rowset)
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
func appendBlock(dst []byte, c *chunk) []byte {
	dead := c.dead()
	flags := byte(0)
	if dead != nil {
		flags |= blockDeleted
	}
	if c.subs != nil {
		flags |= blockSubs
	}
	dst = append(dst, flags)
	if dead != nil {
		dst = appendRows(dst, dead, c.rows())
	}
	dst, moments := appendIDs(dst, c.ids)
	if c.subs != nil {
		dst = append(dst, c.subs...)
	}
	references := [][]int64{moments}
	for _, x := range []*ints{&c.revision, &c.visible} {
		dst = appendNumbers(dst, x.raw, nil, references)
		references = append(references, x.raw)
	}
	for i, declared := range c.schema.columns {
		col := &c.columns[i+1]
		switch declared.Type {
		case Keyword:
			dst = appendNumbers(dst, col.ints.raw, dead, nil)
		case Bool:
			dst, _ = appendNulls(dst, col.absent, dead, c.rows())
			truth := rowset{}
			truth.or(orEmpty(col.truth))
			dst = appendRows(dst, &truth, c.rows())
		case Number, Time:
			var skip *rowset
			dst, skip = appendNulls(dst, col.absent, dead, c.rows())
			dst = appendNumbers(dst, col.ints.raw, skip, references)
			references = append(references, col.ints.raw)
		}
	}
	return dst
}

func orEmpty(s *rowset) *rowset {
	if s == nil {
		return new(rowset)
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
func appendNulls(dst []byte, absent, dead *rowset, n int) ([]byte, *rowset) {
	nulls := *orEmpty(absent)
	nulls.without(dead)
	skip := nulls
	skip.or(orEmpty(dead))
	switch {
	case nulls.empty():
		return append(dst, nullNone), dead
	case skip == *fullRows(n):
		return append(dst, nullAll), &skip
	}
	return appendRows(append(dst, nullSome), &nulls, n), &skip
}

// appendRows writes a bit for each of n rows.
func appendRows(dst []byte, s *rowset, n int) []byte {
	for i := range (n + 7) / 8 {
		dst = append(dst, byte(s[i/8]>>(i%8*8)))
	}
	return dst
}

// rows reads n bits; those beyond in the last byte must be 0.
func (r *reader) rows(n int) *rowset {
	s := new(rowset)
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
	last   key        // of the block before
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
func (b *blockReader) read(raw []byte, n int) (*chunk, bool) {
	r := &reader{data: raw}
	c := &chunk{
		schema: b.schema, columns: make([]column, len(b.schema.columns)+1),
		texts: [2]texts{newTexts(), newTexts()}, missing: b.schema.Groups() &^ setOf(Core),
	}
	flags := r.byte()
	r.fail(flags&^(blockDeleted|blockSubs) != 0)
	c.live = *fullRows(n)
	var dead *rowset
	if flags&blockDeleted != 0 {
		dead = r.rows(n)
		r.fail(dead.empty())
		c.live.without(dead)
	}
	c.liveCount = c.live.count()
	b.columns = b.columns[:0]
	b.readIDs(r, c, n, flags)
	references := b.columns[:1:1]
	for _, x := range []*ints{&c.revision, &c.visible} {
		values := b.numbers(r, n, nil, references)
		references = append(references, values)
		*x = packed(values, nil)
	}
	for i := range b.schema.columns {
		references = b.readColumn(r, c, Col(i+1), n, dead, references)
	}
	return c, !r.bad && len(r.data) == 0
}

// numbers reads a column into memory that stays its own until the next block.
func (b *blockReader) numbers(r *reader, n int, skip *rowset, references [][]int64) []int64 {
	at := len(b.columns)
	if at < cap(b.columns) {
		b.columns = b.columns[:at+1]
	} else {
		b.columns = append(b.columns, nil)
	}
	if b.columns[at] == nil {
		b.columns[at] = make([]int64, chunkRows)
	}
	values := b.columns[at][:n]
	r.numbers(values, skip, references)
	return values
}

func (b *blockReader) readIDs(r *reader, c *chunk, n int, flags byte) {
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
	c.ids = make([][16]byte, n)
	for i := range c.ids {
		id := &c.ids[i]
		binary.BigEndian.PutUint64(id[:8], uint64(high[i])^1<<63)
		for p := range 8 {
			id[8+p] = planes[p*n+i]
		}
	}
	if subs != nil {
		c.subs = append(make([]uint8, 0, n), subs...)
	}
	for i := range n {
		k := c.key(i)
		r.fail(b.some && b.last.compare(k) >= 0)
		b.some, b.last = true, k
	}
	momentsOf(high)
}

func (b *blockReader) readColumn(r *reader, c *chunk, col Col, n int, dead *rowset, references [][]int64) [][]int64 {
	column := &c.columns[col]
	switch b.schema.column(col).Type {
	case Keyword:
		codes := b.numbers(r, n, dead, nil)
		b.columns = b.columns[:len(b.columns)-1]
		if !r.bad {
			r.fail(!b.use(col, codes))
			column.ints = packed(codes, nil)
		}
	case Bool:
		skip := b.nulls(r, column, n, dead)
		truth := r.rows(n)
		if !r.bad && skip != nil {
			both := *truth
			both.and(skip)
			r.fail(!both.empty())
		}
		if !truth.empty() {
			column.truth = truth
		}
	case Number, Time:
		skip := b.nulls(r, column, n, dead)
		values := b.numbers(r, n, skip, references)
		references = append(references, values)
		column.ints = packed(values, skip)
	}
	return references
}

// nulls reads which rows of a column are null and returns all that have no value.
func (b *blockReader) nulls(r *reader, c *column, n int, dead *rowset) *rowset {
	switch r.byte() {
	case nullNone:
		return dead
	case nullSome:
		nulls := r.rows(n)
		skip := *nulls
		skip.or(orEmpty(dead))
		r.fail(nulls.empty() || skip == *fullRows(n) || skip.count() != nulls.count()+orEmpty(dead).count())
		c.absent = nulls
		return &skip
	case nullAll:
		r.fail(dead != nil && dead.count() == n)
		c.absent = fullRows(n)
		return c.absent
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
