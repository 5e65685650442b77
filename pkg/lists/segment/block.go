package segment

import (
	"encoding/binary"
	"slices"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/strictbinary"
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
	schema *columnar.Schema
	used   []columnar.Bits // by Col: which codes of a Keyword occur
	spans  []int64         // by Col: its codes are less
	last   columnar.Key    // of the block before
	some   bool            // there was one
	// Memory that is used for every block.
	columns [][]int64
	raw     []byte
}

func newBlockReader(s *columnar.Schema, dictionaries []*columnar.Dictionary) *blockReader {
	b := &blockReader{schema: s, used: make([]columnar.Bits, len(dictionaries)), spans: make([]int64, len(dictionaries))}
	for col, d := range dictionaries {
		if d != nil {
			b.spans[col] = int64(d.Span())
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
func (b *blockReader) read(raw []byte, n int) (*columnar.RowGroup, *columnar.RowSet, bool) {
	r := &reader{strictbinary.Reader{Data: raw}}
	flags := r.Byte()
	r.Fail(flags&^(blockDeleted|blockSubs) != 0)
	var deleted *columnar.RowSet
	if flags&blockDeleted != 0 {
		deleted = r.rows(n)
		r.Fail(deleted.Empty())
	}
	g := columnar.NewCoreRowGroup(b.schema, n, deleted)
	b.columns = b.columns[:0]
	b.readIDs(r, g, n, flags)
	references := b.columns[:1:1]
	for _, x := range []*columnar.Ints{&g.Revision, &g.Visible} {
		values := b.numbers(r, n, nil, references)
		references = append(references, values)
		*x = columnar.PackInts(values, nil)
	}
	for i, c := range b.schema.Columns() {
		references = b.readColumn(r, c.Type, columnar.Col(i+1), &g.Columns[i+1], n, deleted, references)
	}
	return g, deleted, !r.Bad && len(r.Data) == 0
}

// numbers reads a column into memory that stays its own until the next block.
func (b *blockReader) numbers(r *reader, n int, skip *columnar.RowSet, references [][]int64) []int64 {
	at := len(b.columns)
	if at < cap(b.columns) {
		b.columns = b.columns[:at+1]
	} else {
		b.columns = append(b.columns, nil)
	}
	if b.columns[at] == nil {
		b.columns[at] = make([]int64, columnar.MaxRowGroup)
	}
	values := b.columns[at][:n]
	r.numbers(values, skip, references)
	return values
}

func (b *blockReader) readIDs(r *reader, g *columnar.RowGroup, n int, flags byte) {
	high := b.numbers(r, n, nil, nil)
	planes := r.Take(uint64(8 * n))
	if flags&blockSubs != 0 {
		g.Subs = slices.Clone(r.Take(uint64(n)))
		r.Fail(allZero(g.Subs))
	}
	if r.Bad {
		return
	}
	g.IDs = make([][16]byte, n)
	for i := range g.IDs {
		id := &g.IDs[i]
		binary.BigEndian.PutUint64(id[:8], uint64(high[i])^1<<63)
		for p := range 8 {
			id[8+p] = planes[p*n+i]
		}
	}
	for i := range n {
		k := g.Key(i)
		r.Fail(b.some && b.last.Compare(k) >= 0)
		b.some, b.last = true, k
	}
	momentsOf(high)
}

func (b *blockReader) readColumn(r *reader, t columnar.ColumnType, col columnar.Col, column *columnar.ColumnData, n int,
	deleted *columnar.RowSet, references [][]int64,
) [][]int64 {
	switch t {
	case columnar.Keyword:
		codes := b.numbers(r, n, deleted, nil)
		b.columns = b.columns[:len(b.columns)-1]
		if !r.Bad {
			r.Fail(!b.use(col, codes))
			column.Values = columnar.PackInts(codes, nil)
		}
	case columnar.Bool:
		skip := r.nulls(column, n, deleted)
		truth := r.rows(n)
		if !r.Bad && skip != nil {
			both := *truth
			both.And(skip)
			r.Fail(!both.Empty())
		}
		if !truth.Empty() {
			column.True = truth
		}
	case columnar.Number, columnar.Time:
		skip := r.nulls(column, n, deleted)
		values := b.numbers(r, n, skip, references)
		references = append(references, values)
		column.Values = columnar.PackInts(values, skip)
	case columnar.Text:
	}
	return references
}

// nulls reads which rows of a column are null and returns all that have no value.
func (r *reader) nulls(c *columnar.ColumnData, n int, deleted *columnar.RowSet) *columnar.RowSet {
	switch r.Byte() {
	case nullNone:
		return deleted
	case nullSome:
		c.Null = r.rows(n)
		skip := *c.Null
		skip.Or(deleted)
		both := *c.Null
		both.And(deleted)
		r.Fail(c.Null.Empty() || skip == *columnar.AllRows(n) || !both.Empty())
		return &skip
	case nullAll:
		r.Fail(deleted != nil && deleted.Count() == n)
		c.Null = columnar.AllRows(n)
		return c.Null
	}
	r.Fail(true)
	return nil
}

// use notes which codes occur and says whether the column can have them.
func (b *blockReader) use(col columnar.Col, codes []int64) bool {
	span, used := uint64(b.spans[col]), b.used[col]
	for _, c := range codes {
		if uint64(c) >= span {
			return false
		}
		used.Add(int(c))
	}
	return true
}
