package columnar

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// RowGroup is up to MaxRowGroup documents in columns. Rows are only appended. A
// document that changes or goes stays as a row that is not live until the row group
// is rewritten.
type RowGroup struct {
	schema    *Schema
	Live      RowSet
	liveCount int
	Keys      []Key
	Revision  []int64
	Visible   []int64
	Columns   []ColumnData // by Col
	Text      Texts        // nil in a view without text
	cache     searchCache
	values    searchCache // of values of Texts with Each
	cells     []cell      // scratch of Append
}

// ColumnData is one column of a row group that is not a Text. The column's type says
// which fields are used.
type ColumnData struct {
	Codes   []uint32 // Keyword
	Numbers []int64  // Number, Time; any number where null
	Null    *RowSet  // Bool, Number, Time: rows that are null; nil when there is none
	True    *RowSet  // Bool: rows that are true; nil when there is none
}

// Texts is the text of the searched columns, and that of the others.
type Texts []TextRows

// NewRowGroup returns a row group without rows, which keeps text or not.
func NewRowGroup(s *Schema, text bool) *RowGroup {
	g := &RowGroup{schema: s, Columns: make([]ColumnData, len(s.columns)+1)}
	if text {
		g.Text = Texts{{Starts: []uint32{0}}, {Starts: []uint32{0}}}
	}
	return g
}

// NewCoreRowGroup returns a row group of n rows, all live but the deleted ones, of
// which the caller sets the columns and the text; deleted may be nil.
func NewCoreRowGroup(s *Schema, n int, deleted *RowSet) *RowGroup {
	g := NewRowGroup(s, false)
	g.Live = *AllRows(n)
	g.Live.Without(deleted)
	g.liveCount = g.Live.Count()
	return g
}

// Rows counts the rows, live or not.
func (g *RowGroup) Rows() int { return len(g.Keys) }

// Deleted returns the rows that are not live, or nil.
func (g *RowGroup) Deleted() *RowSet {
	if g.liveCount == g.Rows() {
		return nil
	}
	deleted := AllRows(g.Rows())
	deleted.Without(&g.Live)
	return deleted
}

// Append adds a document. A deleted one is a row that is not live, and null everywhere.
func (g *RowGroup) Append(d *Document, dictionaries []*Dictionary) {
	row := g.Rows()
	g.Keys = append(g.Keys, d.key())
	g.Revision = append(g.Revision, d.Revision)
	g.Visible = append(g.Visible, d.Visible)
	if !d.Deleted {
		g.Live.add(row)
		g.liveCount++
	}
	g.split(d)
	for i, declared := range g.schema.columns {
		col, cell := &g.Columns[i+1], &g.cells[i+1]
		switch declared.Type {
		case Keyword:
			col.Codes = append(col.Codes, dictionaries[i+1].code(cell.list))
		case Number, Time:
			col.Numbers = append(col.Numbers, cell.number)
		}
		if cell.col == 0 && declared.Type != Keyword && declared.Type != Text {
			col.Null = col.Null.with(row)
		}
		if cell.kind == kindTrue {
			col.True = col.True.with(row)
		}
	}
	for i := range g.Text {
		t := &g.Text[i]
		for _, col := range g.schema.text[i] {
			t.Data = appendColumn(t.Data, &g.cells[col])
		}
		t.close()
	}
}

// split sets the cells, by Col, to the values of a document.
func (g *RowGroup) split(d *Document) {
	if g.cells == nil {
		g.cells = make([]cell, len(g.Columns))
	}
	clear(g.cells)
	for c := range d.cells() {
		if int(c.col) < len(g.cells) && !d.Deleted {
			g.cells[c.col] = c
		}
	}
}

// finish ends a full row group: what its slices have too much is freed.
func (g *RowGroup) finish() {
	g.cells, g.Keys = nil, slices.Clone(g.Keys)
	g.Revision, g.Visible = slices.Clone(g.Revision), slices.Clone(g.Visible)
	for i := range g.Columns {
		col := &g.Columns[i]
		col.Codes, col.Numbers = slices.Clone(col.Codes), slices.Clone(col.Numbers)
	}
	for i := range g.Text {
		t := &g.Text[i]
		t.Data, t.Starts = slices.Clone(t.Data), slices.Clone(t.Starts)
	}
}

func (g *RowGroup) markDead(row int) {
	g.Live.drop(row)
	g.liveCount--
}

// null says whether a Number, Time or Text has no value in a row.
func (g *RowGroup) null(col Col, row int) bool {
	if g.schema.Column(col).Type == Text {
		_, ok := g.text(col, row)
		return !ok
	}
	return g.Columns[col].Null.Has(row)
}

// text returns the first value of a Text.
func (g *RowGroup) text(col Col, row int) ([]byte, bool) {
	p := g.schema.place[col]
	return first(g.Text[p.texts].Row(row), p.rank)
}

// keepNulls keeps the rows in which a column, not a Keyword, has no value.
func (g *RowGroup) keepNulls(col Col, rows *RowSet) {
	if g.schema.isText(col) {
		rows.keep(func(row int) bool { return g.null(col, row) })
		return
	}
	rows.And(g.Columns[col].Null)
}

// keepBetween keeps the rows whose Number or Time lies in [lo, hi].
func (g *RowGroup) keepBetween(col Col, lo, hi int64, rows *RowSet) {
	rows.Without(g.Columns[col].Null)
	rows.keepWithin(g.Columns[col].Numbers, lo, hi)
}

// keepBool keeps the rows in which a Bool is v.
func (g *RowGroup) keepBool(col Col, v bool, rows *RowSet) {
	column := &g.Columns[col]
	if v {
		rows.And(column.True)
		return
	}
	rows.Without(column.Null)
	rows.Without(column.True)
}

// keepText keeps the rows in which a Text has one of values: as its first, or with Each
// as any.
func (g *RowGroup) keepText(col Col, values []string, rows *RowSet) {
	var found RowSet
	for _, value := range values {
		if g.schema.Column(col).Each {
			found.Or(g.holding(col, value))
			continue
		}
		candidates := g.Text[g.schema.place[col].texts].find(append([]byte(value), endValue), 0)
		candidates.And(rows)
		candidates.keep(func(row int) bool {
			v, ok := g.text(col, row)
			return ok && string(v) == value
		})
		found.Or(candidates)
	}
	rows.And(&found)
}

// holding returns the rows, live or not, in which a Text with Each has the value. Such a
// text can be long, so they are cached; only rows that were appended since are read.
func (g *RowGroup) holding(col Col, value string) *RowSet {
	p, ended := g.schema.place[col], append([]byte(value), endValue)
	later := append([]byte{endValue}, ended...)
	token := slices.Concat(ended, []byte{byte(col)})
	known := g.values.cached(token)
	if known != nil && known.upTo == g.Rows() {
		return known.rows
	}
	var before RowSet
	from := 0
	if known != nil {
		before, from = *known.rows, known.upTo
	}
	text := &g.Text[p.texts]
	found := text.find(ended, from)
	found.keep(func(row int) bool {
		values := column(text.Row(row), p.rank)
		values = values[:bytes.IndexByte(values, endColumn)]
		return bytes.HasPrefix(values, ended) || bytes.Contains(values, later)
	})
	found.Or(&before)
	g.values.add(token, found, g.Rows())
	return found
}

// Document returns the document of a row; without text when the row group has none.
func (g *RowGroup) Document(row int, dictionaries []*Dictionary) Document {
	k := g.Keys[row]
	d := Document{
		ID: k.ID, Sub: k.Sub, Revision: g.Revision[row], Visible: g.Visible[row],
		Deleted: !g.Live.Has(row), schema: g.schema,
	}
	if d.Deleted {
		return d
	}
	var room [256]byte
	values := room[:0]
	for i, declared := range g.schema.columns {
		col := Col(i + 1)
		column := &g.Columns[col]
		switch null := column.Null.Has(row); {
		case declared.Type == Keyword:
			values = appendList(values, col, dictionaries[col].Value(column.Codes[row]))
		case declared.Type == Text:
			if p := g.schema.place[col]; g.Text != nil {
				values = appendStrings(values, col, textValues(g.Text[p.texts].Row(row), p.rank))
			}
		case null:
		case declared.Type != Bool:
			values = binary.AppendVarint(append(values, byte(col), kindNumber), column.Numbers[row])
		case column.True.Has(row):
			values = append(values, byte(col), kindTrue)
		default:
			values = append(values, byte(col), kindFalse)
		}
	}
	if len(values) > 0 {
		d.values = bytes.Clone(values)
	}
	return d
}

func (g *RowGroup) bytes() int {
	n := 17*cap(g.Keys) + 8*(cap(g.Revision)+cap(g.Visible))
	for i := range g.Columns {
		col := &g.Columns[i]
		n += 96 + 4*cap(col.Codes) + 8*cap(col.Numbers) + col.Null.bytes() + col.True.bytes()
	}
	for i := range g.Text {
		n += cap(g.Text[i].Data) + 4*cap(g.Text[i].Starts)
	}
	return n + 1024
}
