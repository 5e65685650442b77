package segment

import (
	"bytes"
	"slices"

	"github.com/commerce-integration/service/pkg/base/strictbinary"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// appendBlock writes the columns of a row group that are not text.
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
	dst = appendNumbers(dst, g.Revision)
	dst = appendNumbers(dst, g.Visible)
	for i, declared := range s.Columns() {
		col := &g.Columns[i+1]
		switch declared.Type {
		case columnar.Keyword:
			dst = appendNumbers(dst, col.Codes)
		case columnar.Bool:
			dst = appendRows(appendRows(dst, col.Null, n), col.True, n)
		case columnar.Number, columnar.Time:
			dst = appendNumbers(appendRows(dst, col.Null, n), col.Numbers)
		case columnar.Text:
		}
	}
	return dst
}

// blockSize is the bytes of a block of n rows.
func blockSize(s *columnar.Schema, n int) int {
	bits := (n + 7) / 8
	size := bits + (16+1+2*8)*n
	for _, c := range s.Columns() {
		switch c.Type {
		case columnar.Keyword:
			size += 4 * n
		case columnar.Bool:
			size += 2 * bits
		case columnar.Number, columnar.Time:
			size += bits + 8*n
		case columnar.Text:
		}
	}
	return size
}

// blocks reads the blocks of one segment.
type blocks struct {
	*reader
	schema       *columnar.Schema
	dictionaries []*columnar.Dictionary
	last         columnar.Key // of the rows before
	some         bool         // there were any
	raw          []byte       // used again for every block, as is
}

// read reads the next frame as a block of n rows.
func (b *blocks) read(n int) *columnar.RowGroup {
	size := blockSize(b.schema, n)
	b.raw = b.frame(b.raw, size)
	if b.Fail(len(b.raw) != size); b.Bad {
		return nil
	}
	r := &reader{strictbinary.Reader{Data: b.raw}}
	g := columnar.NewCoreRowGroup(b.schema, n, r.rowSet(n))
	b.readKeys(r, g, n)
	g.Revision, g.Visible = numbers[int64](r, n), numbers[int64](r, n)
	for i, c := range b.schema.Columns() {
		col := &g.Columns[i+1]
		switch c.Type {
		case columnar.Keyword:
			col.Codes = numbers[uint32](r, n)
			b.Fail(int(slices.Max(col.Codes)) >= b.dictionaries[i+1].Span())
		case columnar.Bool:
			col.Null, col.True = r.rowSet(n), r.rowSet(n)
		case columnar.Number, columnar.Time:
			col.Null, col.Numbers = r.rowSet(n), numbers[int64](r, n)
		case columnar.Text:
		}
	}
	b.Fail(r.Bad)
	return g
}

// readKeys refuses keys that do not rise.
func (b *blocks) readKeys(r *reader, g *columnar.RowGroup, n int) {
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

// appendTexts writes the text of a row group: of the searched columns and then of the
// others, the lengths of the rows and the rows.
func appendTexts(dst []byte, texts columnar.Texts) []byte {
	for _, t := range texts {
		dst = append(appendLengths(dst, t.Starts[1:]), t.Data...)
	}
	return dst
}

// texts reads the next frame as the text of n rows, of which each has so many searched
// and other columns.
func (r *reader) texts(n int, columns [2]int) columnar.Texts {
	raw := reader{strictbinary.Reader{Data: r.frame(nil, MaxGroup)}}
	texts := make(columnar.Texts, len(columns))
	for i := range texts {
		ends := raw.ends(n)
		if r.Fail(raw.Bad); r.Bad {
			return nil
		}
		texts[i] = columnar.TextRows{Data: bytes.Clone(raw.fixed(int(ends[n-1]))), Starts: append([]uint32{0}, ends...)}
		for row := range n {
			r.Fail(!columnar.ValidRow(texts[i].Row(row), columns[i]))
		}
	}
	r.Fail(len(raw.Data) > 0)
	return texts
}
