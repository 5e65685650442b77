package segment

import (
	"slices"

	"github.com/commerce-integration/service/pkg/base/strictbinary"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Bytes of a number and of a code.
const (
	numberWidth = 8
	codeWidth   = 4
)

// appendBlock writes the Core columns of a row group that is not packed.
func appendBlock(dst []byte, s *columnar.Schema, g *columnar.RowGroup) []byte {
	n := g.Rows()
	dst = appendRows(dst, g.Deleted(), n)
	for b := range len(columnar.Key{}.ID) {
		for i := range g.Keys {
			dst = append(dst, g.Keys[i].ID[b])
		}
	}
	for i := range g.Keys {
		dst = append(dst, g.Keys[i].Sub)
	}
	dst = appendNumbers(dst, g.Revision.Raw, numberWidth)
	dst = appendNumbers(dst, g.Visible.Raw, numberWidth)
	for i, declared := range s.Columns() {
		col := &g.Columns[i+1]
		switch declared.Type {
		case columnar.Keyword:
			dst = appendNumbers(dst, col.Values.Raw, codeWidth)
		case columnar.Bool:
			dst = appendRows(appendRows(dst, col.Null, n), col.True, n)
		case columnar.Number, columnar.Time:
			dst = appendNumbers(appendRows(dst, col.Null, n), withoutNulls(col), numberWidth)
		case columnar.Text:
		}
	}
	return dst
}

// withoutNulls gives the rows without a value the least one: it takes the least room.
func withoutNulls(c *columnar.ColumnData) []int64 {
	if c.Null == nil {
		return c.Values.Raw
	}
	values := slices.Clone(c.Values.Raw)
	for i := range values {
		if c.Null.Has(i) {
			values[i] = c.Values.Least()
		}
	}
	return values
}

// blockSize is the bytes of a block of n rows.
func blockSize(s *columnar.Schema, n int) int {
	bits := (n + 7) / 8
	size := bits + (16+1+2*numberWidth)*n
	for _, c := range s.Columns() {
		switch c.Type {
		case columnar.Keyword:
			size += codeWidth * n
		case columnar.Bool:
			size += 2 * bits
		case columnar.Number, columnar.Time:
			size += bits + numberWidth*n
		case columnar.Text:
		}
	}
	return size
}

// blockReader reads the blocks of one segment.
type blockReader struct {
	*reader
	schema       *columnar.Schema
	dictionaries []*columnar.Dictionary
	last         columnar.Key // of the rows before
	some         bool         // there were any
	raw          []byte       // used again for every block, as is
	values       [columnar.MaxRowGroup]int64
}

// read reads the next frame as a block of n rows.
func (b *blockReader) read(n int) *columnar.RowGroup {
	size := blockSize(b.schema, n)
	b.raw = b.frame(b.raw, size)
	if b.Fail(len(b.raw) != size); b.Bad {
		return nil
	}
	r := &reader{strictbinary.Reader{Data: b.raw}}
	g := columnar.NewCoreRowGroup(b.schema, n, r.rowSet(n))
	b.readKeys(r, g, n)
	g.Revision, g.Visible = b.numbers(r, n, nil), b.numbers(r, n, nil)
	for i, c := range b.schema.Columns() {
		col := &g.Columns[i+1]
		switch c.Type {
		case columnar.Keyword:
			col.Values = b.codes(r, n, b.dictionaries[i+1])
		case columnar.Bool:
			col.Null, col.True = r.rowSet(n), r.rowSet(n)
		case columnar.Number, columnar.Time:
			col.Null = r.rowSet(n)
			col.Values = b.numbers(r, n, col.Null)
		case columnar.Text:
		}
	}
	b.Fail(r.Bad)
	return g
}

// readKeys refuses keys that do not rise.
func (b *blockReader) readKeys(r *reader, g *columnar.RowGroup, n int) {
	g.Keys = make([]columnar.Key, n)
	for p := range len(columnar.Key{}.ID) {
		for i, v := range r.fixed(n) {
			g.Keys[i].ID[p] = v
		}
	}
	for i, sub := range r.fixed(n) {
		g.Keys[i].Sub = sub
		b.Fail(b.some && b.last.Compare(g.Keys[i]) >= 0)
		b.last, b.some = g.Keys[i], true
	}
}

func (b *blockReader) numbers(r *reader, n int, null *columnar.RowSet) columnar.Ints {
	r.numbers(b.values[:n], numberWidth)
	return columnar.PackInts(b.values[:n], null)
}

// codes refuses a code that the dictionary does not have.
func (b *blockReader) codes(r *reader, n int, d *columnar.Dictionary) columnar.Ints {
	r.numbers(b.values[:n], codeWidth)
	b.Fail(slices.Max(b.values[:n]) >= int64(d.Span()))
	return columnar.PackInts(b.values[:n], nil)
}
