package columnar

import "fmt"

// Batch is the documents of a segment in row groups, in the order of their keys: all
// row groups but the last are full. Rows of deleted documents are not live.
type Batch struct {
	Schema       *Schema
	RowGroups    []*RowGroup
	Dictionaries []*Dictionary // by Col, nil unless a Keyword
	Text         bool          // whether the row groups have their text
}

// Load adds the documents of batches to the view, as Apply would. It is fast because
// the view takes the batches' row groups, which it owns from then on. Load panics when a
// batch is of another schema, or lacks the text that the view has.
func (v *View) Load(batches ...*Batch) {
	for _, b := range batches {
		if b.Schema != v.schema || v.table.text && !b.Text {
			panic(fmt.Sprintf("index: Load: a segment of schema %s, with text: %t; want %s", b.Schema.name, b.Text, v.schema.name))
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, b := range batches {
		v.table.load(b)
	}
	v.table.rewrite()
}

func (t *table) load(b *Batch) {
	t.recode(b)
	left := 0
	for _, g := range b.RowGroups {
		left += g.Rows()
	}
	swaps := make([]swap, 0, left)
	from, found := 0, false
	for _, g := range b.RowGroups {
		number := t.addGroup(g)
		for row := range g.Rows() {
			d := version{g.Keys[row], g.Revision[row], g.Visible[row], !g.Live.Has(row)}
			from, found = t.lookup(from, left, d.key)
			left--
			switch old, counts := t.superseded(d, from, found); {
			case counts && d.deleted:
				t.enter(d, old)
				swaps = append(swaps, swap{old, nowhere})
			case counts:
				t.enter(d, old)
				swaps = append(swaps, swap{old, ordinal(number, row)})
			case !d.deleted:
				g.markDead(row)
			}
		}
	}
	t.reorder(swaps)
}

// recode gives the rows of a batch the codes of the table.
func (t *table) recode(b *Batch) {
	for col, d := range b.Dictionaries {
		if d == nil {
			continue
		}
		to := t.dictionaries[col]
		if len(to.Ends) == 0 {
			d.index()
			t.dictionaries[col] = d
			continue
		}
		become := make([]uint32, d.Span())
		for code := 1; code < d.Span(); code++ {
			become[code] = to.code(d.Value(uint32(code)))
		}
		for _, g := range b.RowGroups {
			codes := g.Columns[col].Codes
			for row, code := range codes {
				codes[row] = become[code]
			}
		}
	}
}
