package columnar

import (
	"fmt"
	"math/bits"
)

// chunk is up to chunkRows documents in columns. Rows are only added, at its end;
// a document that changes or goes stays as a row that is not live, until the
// chunk is evacuated. A full chunk is packed and signed, and changes no more but
// for live and visible.
type chunk struct {
	schema    *Schema
	live      rowset
	liveCount int
	ids       [][16]byte
	subs      []uint8 // nil while all are 0
	revision  ints
	visible   ints
	columns   []column // by Col
	texts     [2]texts // by group
	missing   GroupSet // text that a segment brought without; its texts are empty
	searches  searches
}

// column is one column of a chunk; which fields it uses depends on its type.
type column struct {
	ints   ints    // Keyword: codes; Number, Time: values; Text with Match: fingerprints
	absent *rowset // Bool, Number, Time: rows that are null; nil when there is none
	truth  *rowset // Bool: rows that are true; nil when there is none
}

func newChunk(s *Schema) *chunk {
	c := &chunk{
		schema: s, revision: newInts(), visible: newInts(),
		columns: make([]column, len(s.columns)+1),
		texts:   [2]texts{newTexts(), newTexts()},
	}
	for i := range c.columns {
		c.columns[i].ints = newInts()
	}
	return c
}

func (c *chunk) rows() int { return len(c.ids) }

func (c *chunk) key(row int) key {
	k := key{id: c.ids[row]}
	if c.subs != nil {
		k.sub = c.subs[row]
	}
	return k
}

// appendHead adds the part of a row that every schema has.
func (c *chunk) appendHead(k key, revision, visible int64) {
	row := len(c.ids)
	c.ids = append(c.ids, k.id)
	if k.sub != 0 && c.subs == nil {
		c.subs = make([]uint8, row, chunkRows)
	}
	if c.subs != nil {
		c.subs = append(c.subs, k.sub)
	}
	c.revision.append(revision)
	c.visible.append(visible)
	c.live.add(row)
	c.liveCount++
}

// append adds a document; cells are its columns.
func (c *chunk) append(d *Document, visible int64, cells []cell, dictionaries []*dictionary) {
	row := len(c.ids)
	c.appendHead(d.key(), d.Revision, visible)
	for i, declared := range c.schema.columns {
		col, cell := &c.columns[i+1], cells[i+1]
		switch declared.Type {
		case Keyword:
			col.ints.append(dictionaries[i+1].code(cell))
		case Bool:
			col.appendBool(row, cell.col != 0, cell.kind == kindTrue)
		case Number, Time:
			col.appendNumber(row, cell.col != 0, cell.number)
		case Text:
			if declared.Match {
				col.ints.append(fingerprint(cell))
			}
		}
	}
	for g, cols := range c.schema.groups {
		if len(cols) == 0 {
			continue
		}
		t := &c.texts[g]
		for _, textCol := range cols {
			t.data = appendColumn(t.data, cells[textCol])
		}
		t.close()
	}
}

func (c *column) appendBool(row int, set, v bool) {
	if !set {
		mark(&c.absent, row)
	}
	if v {
		mark(&c.truth, row)
	}
}

func (c *column) appendNumber(row int, set bool, v int64) {
	if set {
		c.ints.append(v)
		return
	}
	mark(&c.absent, row)
	c.ints.appendNull()
}

func mark(s **rowset, row int) {
	if *s == nil {
		*s = new(rowset)
	}
	(*s).add(row)
}

// adopt adds a row of another chunk of the same view.
func (c *chunk) adopt(from *chunk, row int) {
	to := len(c.ids)
	c.appendHead(from.key(row), from.revision.at(row), from.visible.at(row))
	for i, declared := range c.schema.columns {
		col, old := &c.columns[i+1], &from.columns[i+1]
		set := old.absent == nil || !old.absent.has(row)
		switch declared.Type {
		case Keyword:
			col.ints.append(old.ints.at(row))
		case Bool:
			col.appendBool(to, set, old.truth != nil && old.truth.has(row))
		case Number, Time:
			col.appendNumber(to, set, old.ints.at(row))
		case Text:
			if declared.Match {
				col.ints.append(old.ints.at(row))
			}
		}
	}
	for g, cols := range c.schema.groups {
		if len(cols) > 0 {
			c.texts[g].data = append(c.texts[g].data, from.texts[g].row(row)...)
			c.texts[g].close()
		}
	}
}

// seal packs a full chunk.
func (c *chunk) seal() {
	c.ids = append(make([][16]byte, 0, len(c.ids)), c.ids...)
	c.revision.pack()
	c.visible.pack()
	for i, declared := range c.schema.columns {
		if declared.Type != Bool && (declared.Type != Text || declared.Match) {
			c.columns[i+1].ints.pack()
		}
	}
	for g := range c.texts {
		c.texts[g].pack()
	}
	c.searches.forget()
}

func (c *chunk) kill(row int) {
	c.live.drop(row)
	c.liveCount--
}

// null says whether a Number, Time or Text has no value in a row.
func (c *chunk) null(col Col, row int) bool {
	if c.schema.column(col).Type == Text {
		_, ok := c.text(col, row)
		return !ok
	}
	absent := c.columns[col].absent
	return absent != nil && absent.has(row)
}

// text returns the first value of a Text.
func (c *chunk) text(col Col, row int) ([]byte, bool) {
	p := c.schema.place[col]
	return first(c.texts[p.group].row(row), p.rank)
}

// nulls keeps the rows in which the column has no value.
func (c *chunk) nulls(col Col, rows *rowset) {
	column := &c.columns[col]
	switch c.schema.column(col).Type {
	case Text:
		c.want(c.schema.needsColumn(col), rows)
		column.ints.within(0, 0, rows)
	case Keyword:
		column.ints.within(0, 0, rows)
	default:
		rows.and(column.absent)
	}
}

// between keeps the rows whose Number or Time lies in [lo, hi].
func (c *chunk) between(col Col, lo, hi int64, rows *rowset) {
	rows.without(c.columns[col].absent)
	c.columns[col].ints.within(lo, hi, rows)
}

// is keeps the rows in which a Bool is v.
func (c *chunk) is(col Col, v bool, rows *rowset) {
	column := &c.columns[col]
	if v {
		rows.and(column.truth)
		return
	}
	rows.without(column.absent)
	rows.without(column.truth)
}

// matches keeps the rows in which the first value of a Text is one of values.
func (c *chunk) matches(col Col, values []string, rows *rowset) {
	c.want(c.schema.needsColumn(col), rows)
	var found rowset
	for _, value := range values {
		candidates := *rows
		h := hash8([]byte(value))
		c.columns[col].ints.within(h, h, &candidates)
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
func (c *chunk) search(s *search, closed bool, rows *rowset) {
	c.searches.narrow(s, &c.texts[searched], closed, rows)
}

// want panics when there are rows of which groups are asked that the chunk lacks:
// who asks finds out with Needs, and fetches them first.
func (c *chunk) want(groups GroupSet, rows *rowset) {
	if lacks := c.missing & groups; lacks != 0 && !rows.empty() {
		panic(fmt.Sprintf("index: Query: a chunk of schema %s lacks its %s", c.schema.name, Group(bits.TrailingZeros8(uint8(lacks)))))
	}
}

func (c *chunk) bytes() int {
	n := 16*cap(c.ids) + cap(c.subs) + c.revision.bytes() + c.visible.bytes()
	for i := range c.columns {
		col := &c.columns[i]
		n += 96 + col.ints.bytes()
		if col.absent != nil {
			n += 8 * chunkWords
		}
		if col.truth != nil {
			n += 8 * chunkWords
		}
	}
	for g := range c.texts {
		n += cap(c.texts[g].data) + 4*cap(c.texts[g].starts)
	}
	return n + 1024 + c.searches.bytes()
}
