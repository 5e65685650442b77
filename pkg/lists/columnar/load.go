package columnar

import "fmt"

// Batch is the documents of a segment in row groups, in the order of their keys: all
// row groups but the last are full. Rows of deleted documents are not live.
type Batch struct {
	Schema       *Schema
	RowGroups    []*RowGroup
	Dictionaries []*Dictionary  // by Col, nil unless a Keyword
	Decoded      ColumnGroupSet // groups that the row groups have
	view         *View          // the owner
}

// DecodedText is the text of one row group in one column group.
type DecodedText struct {
	Rows         TextRows
	Fingerprints []Ints // by the rank of the column in Schema.TextColumns; of columns with Match
}

// InView says whether a view owns the batch.
func (b *Batch) InView() bool { return b.view != nil }

// Give adds a column group, as decoded for each row group. The batch must not be in
// a view; see View.Fill.
func (b *Batch) Give(group ColumnGroup, text []DecodedText) {
	if b.Decoded.Has(group) {
		return
	}
	for i, g := range b.RowGroups {
		if g.Rows() == 0 {
			continue // A view has dropped it, because no row was live.
		}
		g.Text[group] = text[i].Rows
		for rank, col := range b.Schema.text[group] {
			if b.Schema.Column(col).Match {
				g.Columns[col].Values = text[i].Fingerprints[rank]
			}
		}
		g.missing &^= SetOf(group)
	}
	b.Decoded |= SetOf(group)
}

// Load adds the documents of batches to the view, as Apply would. It is fast because
// the view takes the batches' row groups; it owns the batches from then on. Batches may
// lack groups of text: queries that need them must wait for Fill. Load panics when a
// batch is of another schema or already in a view.
func (v *View) Load(batches ...*Batch) {
	for _, b := range batches {
		if b.Schema != v.schema {
			panic(fmt.Sprintf("index: Load: a segment of schema %s, want %s", b.Schema.name, v.schema.name))
		}
		if b.view != nil {
			panic("index: Load: the segment is in a view")
		}
		b.view = v
	}
	v.changing.Lock()
	defer v.changing.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, b := range batches {
		v.table.load(b)
	}
	v.table.rewrite()
	v.table.rewriteDictionaries()
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
			d := version{g.Keys[row], g.Revision.At(row), g.Visible.At(row), !g.Live.Has(row)}
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
		before, become := len(to.Ends), d.into(to)
		for _, g := range b.RowGroups {
			g.replaceCodes(col, become)
			g.Columns[col].Values.pack()
		}
		to.checked += len(to.Ends) - before
	}
	b.Dictionaries = nil
}

// Fill gives a batch that is in the view a group of text, as decoded for each row
// group; a group that it has stays as it is. It panics when the batch is not in the
// view.
func (v *View) Fill(b *Batch, group ColumnGroup, text []DecodedText) {
	if b.view != v {
		panic("index: Fill: the segment is not in this view")
	}
	v.changing.Lock()
	defer v.changing.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	b.Give(group, text)
	v.table.rewrite()
}
