package columnar

import (
	"fmt"
	"math/bits"
)

// chunk is up to chunkRows documents in columns. Rows are only added, at its end;
// a document that changes or goes stays as a row that is not live, until the
// chunk is evacuated. A full chunk is packed and signed, and changes no more but
// for live and visible.
type RowGroup struct {
	schema    *Schema
	Live      RowSet
	liveCount int
	IDs       [][16]byte
	Subs      []uint8 // nil while all are 0
	Revision  Ints
	Visible   Ints
	Columns   []ColumnData // by Col
	Text     [2]TextRows // by group
	Missing   ColumnGroupSet // text that a segment brought without; its texts are empty
	cache  searchCache
}

// column is one column of a chunk; which fields it uses depends on its type.
type ColumnData struct {
	Values   Ints    // Keyword: codes; Number, Time: values; Text with Match: fingerprints
	Null *RowSet // Bool, Number, Time: rows that are null; nil when there is none
	True  *RowSet // Bool: rows that are true; nil when there is none
}

func NewRowGroup(s *Schema) *RowGroup {
	c := &RowGroup{
		schema: s, Revision: newInts(), Visible: newInts(),
		Columns: make([]ColumnData, len(s.columns)+1),
		Text:   [2]TextRows{newTexts(), newTexts()},
	}
	for i := range c.Columns {
		c.Columns[i].Values = newInts()
	}
	return c
}

func (c *RowGroup) Rows() int { return len(c.IDs) }

func (c *RowGroup) Key(row int) Key {
	k := Key{ID: c.IDs[row]}
	if c.Subs != nil {
		k.Sub = c.Subs[row]
	}
	return k
}

// appendHead adds the part of a row that every schema has.
func (c *RowGroup) appendHead(k Key, revision, visible int64) {
	row := len(c.IDs)
	c.IDs = append(c.IDs, k.ID)
	if k.Sub != 0 && c.Subs == nil {
		c.Subs = make([]uint8, row, MaxRowGroup)
	}
	if c.Subs != nil {
		c.Subs = append(c.Subs, k.Sub)
	}
	c.Revision.append(revision)
	c.Visible.append(visible)
	c.Live.add(row)
	c.liveCount++
}

// append adds a document; cells are its columns.
func (c *RowGroup) Append(d *Document, visible int64, cells []cell, dictionaries []*Dictionary) {
	row := len(c.IDs)
	c.appendHead(d.key(), d.Revision, visible)
	for i, declared := range c.schema.columns {
		col, cell := &c.Columns[i+1], cells[i+1]
		switch declared.Type {
		case Keyword:
			col.Values.append(dictionaries[i+1].code(cell))
		case Bool:
			col.appendBool(row, cell.col != 0, cell.kind == kindTrue)
		case Number, Time:
			col.appendNumber(row, cell.col != 0, cell.number)
		case Text:
			if declared.Match {
				col.Values.append(fingerprint(cell))
			}
		}
	}
	for g, cols := range c.schema.groups {
		if len(cols) == 0 {
			continue
		}
		t := &c.Text[g]
		for _, textCol := range cols {
			t.Data = appendColumn(t.Data, cells[textCol])
		}
		t.close()
	}
}

func (c *ColumnData) appendBool(row int, set, v bool) {
	if !set {
		mark(&c.Null, row)
	}
	if v {
		mark(&c.True, row)
	}
}

func (c *ColumnData) appendNumber(row int, set bool, v int64) {
	if set {
		c.Values.append(v)
		return
	}
	mark(&c.Null, row)
	c.Values.appendNull()
}

func mark(s **RowSet, row int) {
	if *s == nil {
		*s = new(RowSet)
	}
	(*s).add(row)
}

// adopt adds a row of another chunk of the same view.
func (c *RowGroup) AppendRow(from *RowGroup, row int) {
	to := len(c.IDs)
	c.appendHead(from.Key(row), from.Revision.At(row), from.Visible.At(row))
	for i, declared := range c.schema.columns {
		col, old := &c.Columns[i+1], &from.Columns[i+1]
		set := old.Null == nil || !old.Null.Has(row)
		switch declared.Type {
		case Keyword:
			col.Values.append(old.Values.At(row))
		case Bool:
			col.appendBool(to, set, old.True != nil && old.True.Has(row))
		case Number, Time:
			col.appendNumber(to, set, old.Values.At(row))
		case Text:
			if declared.Match {
				col.Values.append(old.Values.At(row))
			}
		}
	}
	for g, cols := range c.schema.groups {
		if len(cols) > 0 {
			c.Text[g].Data = append(c.Text[g].Data, from.Text[g].Row(row)...)
			c.Text[g].close()
		}
	}
}

// seal packs a full chunk.
func (c *RowGroup) seal() {
	c.IDs = append(make([][16]byte, 0, len(c.IDs)), c.IDs...)
	c.Revision.pack()
	c.Visible.pack()
	for i, declared := range c.schema.columns {
		if declared.Type != Bool && (declared.Type != Text || declared.Match) {
			c.Columns[i+1].Values.pack()
		}
	}
	for g := range c.Text {
		c.Text[g].pack()
	}
	c.cache.forget()
}

func (c *RowGroup) markDead(row int) {
	c.Live.drop(row)
	c.liveCount--
}

// null says whether a Number, Time or Text has no value in a row.
func (c *RowGroup) null(col Col, row int) bool {
	if c.schema.Column(col).Type == Text {
		_, ok := c.text(col, row)
		return !ok
	}
	absent := c.Columns[col].Null
	return absent != nil && absent.Has(row)
}

// text returns the first value of a Text.
func (c *RowGroup) text(col Col, row int) ([]byte, bool) {
	p := c.schema.place[col]
	return first(c.Text[p.group].Row(row), p.rank)
}

// nulls keeps the rows in which the column has no value.
func (c *RowGroup) nulls(col Col, rows *RowSet) {
	column := &c.Columns[col]
	switch c.schema.Column(col).Type {
	case Text:
		c.mustHave(c.schema.needsColumn(col), rows)
		column.Values.within(0, 0, rows)
	case Keyword:
		column.Values.within(0, 0, rows)
	default:
		rows.And(column.Null)
	}
}

// between keeps the rows whose Number or Time lies in [lo, hi].
func (c *RowGroup) between(col Col, lo, hi int64, rows *RowSet) {
	rows.Without(c.Columns[col].Null)
	c.Columns[col].Values.within(lo, hi, rows)
}

// is keeps the rows in which a Bool is v.
func (c *RowGroup) is(col Col, v bool, rows *RowSet) {
	column := &c.Columns[col]
	if v {
		rows.And(column.True)
		return
	}
	rows.Without(column.Null)
	rows.Without(column.True)
}

// matches keeps the rows in which the first value of a Text is one of values.
func (c *RowGroup) matches(col Col, values []string, rows *RowSet) {
	c.mustHave(c.schema.needsColumn(col), rows)
	var found RowSet
	for _, value := range values {
		candidates := *rows
		h := Fingerprint([]byte(value))
		c.Columns[col].Values.within(h, h, &candidates)
		for w, word := range candidates {
			for ; word != 0; word &= word - 1 {
				row := w<<6 + bits.TrailingZeros64(word)
				if v, _ := c.text(col, row); string(v) == value {
					found.add(row)
				}
			}
		}
	}
	*rows = found
}

// search keeps the rows in which every token occurs in a searched value. A chunk
// that takes no more rows is closed.
func (c *RowGroup) search(s *search, closed bool, rows *RowSet) {
	c.cache.narrow(s, &c.Text[searched], closed, rows)
}

// want panics when there are rows of which groups are asked that the chunk lacks:
// who asks finds out with Needs, and fetches them first.
func (c *RowGroup) mustHave(groups ColumnGroupSet, rows *RowSet) {
	if lacks := c.Missing & groups; lacks != 0 && !rows.Empty() {
		panic(fmt.Sprintf("index: Query: a chunk of schema %s lacks its %s", c.schema.name, ColumnGroup(bits.TrailingZeros8(uint8(lacks)))))
	}
}

func (c *RowGroup) bytes() int {
	n := 16*cap(c.IDs) + cap(c.Subs) + c.Revision.bytes() + c.Visible.bytes()
	for i := range c.Columns {
		col := &c.Columns[i]
		n += 96 + col.Values.bytes()
		if col.Null != nil {
			n += 8 * rowWords
		}
		if col.True != nil {
			n += 8 * rowWords
		}
	}
	for g := range c.Text {
		n += cap(c.Text[g].Data) + 4*cap(c.Text[g].Starts)
	}
	return n + 1024 + c.cache.bytes()
}
