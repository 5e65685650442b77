package columnar

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// RowGroup is up to MaxRowGroup documents in columns. Rows are only appended. A
// document that changes or goes stays as a row that is not live until the row group
// is rewritten. In a view, a full row group is packed and then changes only in
// the live rows and Visible.
type RowGroup struct {
	schema    *Schema
	Live      RowSet
	liveCount int
	Keys      []Key
	Revision  Ints
	Visible   Ints
	Columns   []ColumnData // by Col
	Text      [NumColumnGroups]TextRows
	missing   ColumnGroupSet // text that was not loaded: the rows have none in Text
	cache     searchCache
	cells     []cell // scratch of Append
}

// ColumnData is one column of a row group. The column's type says which fields
// are used.
type ColumnData struct {
	Values Ints    // Keyword: codes; Number, Time: values; Text with Match: fingerprints
	Null   *RowSet // Bool, Number, Time: rows that are null; nil when there is none
	True   *RowSet // Bool: rows that are true; nil when there is none
}

// NewRowGroup returns a row group without rows.
func NewRowGroup(s *Schema) *RowGroup {
	g := &RowGroup{
		schema: s, Revision: newInts(), Visible: newInts(),
		Columns: make([]ColumnData, len(s.columns)+1), Text: emptyText(),
	}
	for i := range g.Columns {
		g.Columns[i].Values = newInts()
	}
	return g
}

// NewCoreRowGroup returns a row group of n rows, all live but the deleted ones, of
// which the caller sets the columns of Core; deleted may be nil. It has no text.
func NewCoreRowGroup(s *Schema, n int, deleted *RowSet) *RowGroup {
	g := &RowGroup{
		schema: s, Live: *AllRows(n),
		Columns: make([]ColumnData, len(s.columns)+1), Text: emptyText(), missing: s.ColumnGroups() &^ SetOf(Core),
	}
	g.Live.Without(deleted)
	g.liveCount = g.Live.Count()
	return g
}

func emptyText() (text [NumColumnGroups]TextRows) {
	for i := range text {
		text[i] = newTexts()
	}
	return text
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
	g.Revision.append(d.Revision)
	g.Visible.append(d.Visible)
	if !d.Deleted {
		g.Live.add(row)
		g.liveCount++
	}
	g.split(d)
	for i, declared := range g.schema.columns {
		col, cell := &g.Columns[i+1], g.cells[i+1]
		switch declared.Type {
		case Keyword:
			col.Values.append(dictionaries[i+1].code(cell.list))
		case Bool:
			col.appendBool(row, cell.col != 0, cell.kind == kindTrue)
		case Number, Time:
			col.appendNumber(row, cell.col != 0, cell.number)
		case Text:
			if declared.Match {
				col.Values.append(cell.fingerprint())
			}
		}
	}
	for _, group := range g.schema.textGroups {
		t := &g.Text[group]
		for _, col := range g.schema.text[group] {
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

// hasValues says whether ColumnData.Values is used.
func (c Column) hasValues() bool { return c.Type != Bool && (c.Type != Text || c.Match) }

func (c *ColumnData) appendBool(row int, set, v bool) {
	if !set {
		c.Null = c.Null.with(row)
	}
	if v {
		c.True = c.True.with(row)
	}
}

func (c *ColumnData) appendNumber(row int, set bool, v int64) {
	if set {
		c.Values.append(v)
		return
	}
	c.Null = c.Null.with(row)
	c.Values.appendNull()
}

// pack makes a full row group smaller and faster to compare.
func (g *RowGroup) pack() {
	g.Keys, g.cells = slices.Clip(slices.Clone(g.Keys)), nil
	g.Revision.pack()
	g.Visible.pack()
	for i, declared := range g.schema.columns {
		if declared.hasValues() {
			g.Columns[i+1].Values.pack()
		}
	}
	for i := range g.Text {
		g.Text[i].pack()
	}
	g.cache.forget()
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
	return first(g.Text[p.group].Row(row), p.rank)
}

// keepNulls keeps the rows in which the column has no value.
func (g *RowGroup) keepNulls(col Col, rows *RowSet) {
	column := &g.Columns[col]
	switch g.schema.Column(col).Type {
	case Text:
		g.mustHave(g.schema.needsColumn(col), rows)
		column.Values.within(0, 0, rows)
	case Keyword:
		column.Values.within(0, 0, rows)
	default:
		rows.And(column.Null)
	}
}

// keepBetween keeps the rows whose Number or Time lies in [lo, hi].
func (g *RowGroup) keepBetween(col Col, lo, hi int64, rows *RowSet) {
	rows.Without(g.Columns[col].Null)
	g.Columns[col].Values.within(lo, hi, rows)
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

// keepText keeps the rows in which the first value of a Text is one of values.
func (g *RowGroup) keepText(col Col, values []string, rows *RowSet) {
	g.mustHave(g.schema.needsColumn(col), rows)
	var found RowSet
	for _, value := range values {
		candidates := *rows
		h := Fingerprint([]byte(value))
		g.Columns[col].Values.within(h, h, &candidates)
		for row := range candidates.all() {
			if v, _ := g.text(col, row); string(v) == value {
				found.add(row)
			}
		}
	}
	*rows = found
}

// mustHave panics when there are rows and the text groups they need are not all
// loaded: the caller asks Needs beforehand.
func (g *RowGroup) mustHave(groups ColumnGroupSet, rows *RowSet) {
	if missing := g.missing & groups; missing != 0 && !rows.Empty() {
		panic(fmt.Sprintf("index: Query: a row group of schema %s lacks its %s", g.schema.name, missing.First()))
	}
}

// replaceCodes replaces the code of every row of a Keyword, live or not. The column is
// not packed then.
func (g *RowGroup) replaceCodes(col int, become func(code int64) int64) {
	codes := newInts()
	for row := range g.Rows() {
		codes.append(become(g.Columns[col].Values.At(row)))
	}
	g.Columns[col].Values = codes
}

// Document returns the document of a row; text that is not loaded is left out.
func (g *RowGroup) Document(row int, dictionaries []*Dictionary) Document {
	k := g.Keys[row]
	d := Document{
		ID: k.ID, Sub: k.Sub, Revision: g.Revision.At(row), Visible: g.Visible.At(row),
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
			values = appendList(values, col, dictionaries[col].Value(column.Values.At(row)))
		case declared.Type == Text:
			p := g.schema.place[col]
			values = appendStrings(values, col, textValues(g.Text[p.group].Row(row), p.rank))
		case null:
		case declared.Type != Bool:
			values = binary.AppendVarint(append(values, byte(col), kindNumber), column.Values.At(row))
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

// textValues returns the values of the column of that rank in a row.
func textValues(row []byte, rank uint8) [][]byte {
	row = column(row, rank)
	row = row[:bytes.IndexByte(row, EndColumn)]
	if len(row) == 0 {
		return nil
	}
	return bytes.Split(row[:len(row)-1], []byte{EndValue})
}

func (g *RowGroup) bytes() int {
	n := 17*cap(g.Keys) + g.Revision.bytes() + g.Visible.bytes()
	for i := range g.Columns {
		col := &g.Columns[i]
		n += 96 + col.Values.bytes() + col.Null.bytes() + col.True.bytes()
	}
	for i := range g.Text {
		n += cap(g.Text[i].Data) + 4*cap(g.Text[i].Starts)
	}
	return n + 1024 + g.cache.bytes()
}
