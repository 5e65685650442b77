package segment

import (
	"encoding/binary"
	"slices"

	"github.com/commerce-integration/service/pkg/base/strictbinary"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Flags of a block.
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

// appendBlock writes the Core columns of a row group that is not packed. It sets the
// values of rows without one to those that a reader will find.
func appendBlock(dst []byte, s *columnar.Schema, g *columnar.RowGroup) []byte {
	deleted, n := g.Deleted(), g.Rows()
	flags := byte(0)
	if deleted != nil {
		flags |= blockDeleted
	}
	if g.Subs != nil {
		flags |= blockSubs
	}
	dst = append(dst, flags)
	if deleted != nil {
		dst = appendRows(dst, deleted, n)
	}
	dst, moments := appendIDs(dst, g.IDs)
	dst = append(dst, g.Subs...)
	references := [][]int64{moments}
	for _, x := range []*columnar.Ints{&g.Revision, &g.Visible} {
		dst = appendNumbers(dst, x.Raw, nil, references)
		references = append(references, x.Raw)
	}
	for i, declared := range s.Columns() {
		col := &g.Columns[i+1]
		switch declared.Type {
		case columnar.Keyword:
			dst = appendNumbers(dst, col.Values.Raw, deleted, nil)
		case columnar.Bool:
			dst, _ = appendNulls(dst, col.Null, deleted, n)
			dst = appendRows(dst, col.True, n)
		case columnar.Number, columnar.Time:
			var skip *columnar.RowSet
			dst, skip = appendNulls(dst, col.Null, deleted, n)
			dst = appendNumbers(dst, col.Values.Raw, skip, references)
			references = append(references, col.Values.Raw)
		case columnar.Text:
		}
	}
	return dst
}

// appendIDs writes the first halves of ids as numbers, and the others byte by byte.
// It returns the moments in the first 48 bits, where a UUID of version 7 has its
// milliseconds.
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

// momentsOf turns the first halves of ids, as numbers, into moments.
func momentsOf(high []int64) []int64 {
	for i, v := range high {
		high[i] = int64((uint64(v) ^ 1<<63) >> 16)
	}
	return high
}

// appendNulls writes which live rows are null and returns all that have no value.
func appendNulls(dst []byte, null, deleted *columnar.RowSet, n int) ([]byte, *columnar.RowSet) {
	var nulls columnar.RowSet
	nulls.Or(null)
	nulls.Without(deleted)
	skip := nulls
	skip.Or(deleted)
	switch {
	case nulls.Empty():
		return append(dst, nullNone), deleted
	case skip == *columnar.AllRows(n):
		return append(dst, nullAll), &skip
	}
	return appendRows(append(dst, nullSome), &nulls, n), &skip
}

// appendRows writes a bit for each of n rows; nil is no row.
func appendRows(dst []byte, s *columnar.RowSet, n int) []byte {
	for i := range (n + 7) / 8 {
		b := byte(0)
		if s != nil {
			b = byte(s[i/8] >> (i % 8 * 8))
		}
		dst = append(dst, b)
	}
	return dst
}

// rows reads n bits; those beyond in the last byte must be 0.
func (r *reader) rows(n int) *columnar.RowSet {
	s := new(columnar.RowSet)
	for i, b := range r.Take(uint64(n+7) / 8) {
		s[i/8] |= uint64(b) << (i % 8 * 8)
	}
	r.Fail(n%64 != 0 && s[n/64]>>(n%64) != 0)
	return s
}

// blockReader reads the blocks of one segment.
type blockReader struct {
	*reader
	columns    []columnar.Column
	used       []columnar.Bits // by Col: which codes of a Keyword occur
	last       columnar.Key    // of the block before
	some       bool            // there was one
	n          int             // rows of this block
	deleted    *columnar.RowSet
	references [][]int64 // the columns read that others may refer to
	// Memory that is used for every block: for references, codes and bytes.
	numbers [][]int64
	codes   []int64
	raw     []byte
}

func newBlockReader(s *columnar.Schema, dictionaries []*columnar.Dictionary) *blockReader {
	b := &blockReader{columns: s.Columns(), used: make([]columnar.Bits, len(dictionaries)), codes: make([]int64, columnar.MaxRowGroup)}
	for col, d := range dictionaries {
		if d != nil {
			b.used[col] = columnar.NewBits(d.Span())
		}
	}
	return b
}

// allUsed says whether the codes that occur are all that the dictionaries have, and
// no others: every set, and every value alone or in a set.
func (b *blockReader) allUsed(dictionaries []*columnar.Dictionary) bool {
	for col, d := range dictionaries {
		if d == nil {
			continue
		}
		want := columnar.NewBits(d.Span())
		for v := range d.Ends {
			want.Add(int(columnar.ValueCode(v)))
		}
		used := b.used[col]
		for s, members := range d.Sets {
			code := int(columnar.SetCode(s))
			if want.Add(code); !used.Has(code) {
				return false
			}
			for _, m := range members {
				used.Add(int(columnar.ValueCode(m)))
			}
		}
		want.Add(0)
		used.Add(0)
		if !slices.Equal(used, want) {
			return false
		}
	}
	return true
}

// maxBlock bounds the bytes of a block of n rows.
func maxBlock(s *columnar.Schema, n int) int {
	const column = 2 + binary.MaxVarintLen64
	return 1 + n + 17*n + (len(s.Columns())+3)*(1+column+9*n)
}

// read returns the row group of a block of n rows and which of them are deleted.
func (b *blockReader) read(s *columnar.Schema, raw []byte, n int) (*columnar.RowGroup, bool) {
	b.reader = &reader{strictbinary.Reader{Data: raw}}
	b.n, b.deleted, b.references = n, nil, b.references[:0]
	flags := b.Byte()
	b.Fail(flags&^(blockDeleted|blockSubs) != 0)
	if flags&blockDeleted != 0 {
		b.deleted = b.rows(n)
		b.Fail(b.deleted.Empty())
	}
	g := columnar.NewCoreRowGroup(s, n, b.deleted)
	b.readIDs(g, flags&blockSubs != 0)
	g.Revision = columnar.PackInts(b.column(nil), nil)
	g.Visible = columnar.PackInts(b.column(nil), nil)
	for i, c := range b.columns {
		b.readColumn(c.Type, b.used[i+1], &g.Columns[i+1])
	}
	return g, !b.Bad && len(b.Data) == 0
}

// column reads numbers that those after them may refer to.
func (b *blockReader) column(skip *columnar.RowSet) []int64 {
	at := len(b.references)
	if at == len(b.numbers) {
		b.numbers = append(b.numbers, make([]int64, columnar.MaxRowGroup))
	}
	values := b.numbers[at][:b.n]
	b.readNumbers(values, skip, b.references)
	b.references = append(b.references, values)
	return values
}

func (b *blockReader) readIDs(g *columnar.RowGroup, subs bool) {
	high := b.column(nil)
	low := b.Take(uint64(8 * b.n))
	if subs {
		g.Subs = slices.Clone(b.Take(uint64(b.n)))
		b.Fail(allZero(g.Subs))
	}
	if b.Bad {
		return
	}
	g.IDs = make([][16]byte, b.n)
	for i := range g.IDs {
		id := &g.IDs[i]
		binary.BigEndian.PutUint64(id[:8], uint64(high[i])^1<<63)
		for p := range 8 {
			id[8+p] = low[p*b.n+i]
		}
	}
	for i := range b.n {
		k := g.Key(i)
		b.Fail(b.some && b.last.Compare(k) >= 0)
		b.some, b.last = true, k
	}
	momentsOf(high)
}

// readColumn reads a column that is not Text; used are the codes of a Keyword.
func (b *blockReader) readColumn(t columnar.ColumnType, used columnar.Bits, c *columnar.ColumnData) {
	switch t {
	case columnar.Keyword:
		codes := b.codes[:b.n]
		if b.readNumbers(codes, b.deleted, nil); b.Bad {
			return
		}
		span := uint64(64 * len(used))
		for _, code := range codes {
			if b.Fail(uint64(code) >= span); b.Bad {
				return
			}
			used.Add(int(code))
		}
		c.Values = columnar.PackInts(codes, nil)
	case columnar.Bool:
		skip := b.nulls(c)
		c.True = b.rows(b.n)
		both := *c.True
		both.And(skip)
		b.Fail(!both.Empty())
		if c.True.Empty() {
			c.True = nil
		}
	case columnar.Number, columnar.Time:
		skip := b.nulls(c)
		c.Values = columnar.PackInts(b.column(skip), skip)
	case columnar.Text:
	}
}

// nulls reads which rows of a column are null and returns all that have no value.
func (b *blockReader) nulls(c *columnar.ColumnData) *columnar.RowSet {
	switch b.Byte() {
	case nullNone:
		return b.deleted
	case nullSome:
		c.Null = b.rows(b.n)
		skip, both := *c.Null, *c.Null
		skip.Or(b.deleted)
		both.And(b.deleted)
		b.Fail(c.Null.Empty() || skip == *columnar.AllRows(b.n) || !both.Empty())
		return &skip
	case nullAll:
		b.Fail(b.deleted != nil && b.deleted.Count() == b.n)
		c.Null = columnar.AllRows(b.n)
		return c.Null
	}
	b.Fail(true)
	return nil
}
