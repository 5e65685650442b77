package columnar

import "fmt"

// Batch is the documents of a segment in row groups, in the order of their keys: all
// row groups but the last are full. Rows of deleted documents are not live.
type Batch struct {
	Schema       *Schema
	RowGroups    []*RowGroup
	Dictionaries []*Dictionary  // by Col, nil unless a Keyword; they need no index
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

// Load adds the documents of batches to the view, as Apply would, all at once. It is
// fast because the view takes the batches' row groups; it owns the batches from then
// on. Batches may lack groups of text: queries that need them must wait for Fill.
// Load panics when a batch is of another schema or already in a view.
func (v *View) Load(batches ...*Batch) {
	groups := 0
	for _, b := range batches {
		if b.Schema != v.schema {
			panic(fmt.Sprintf("index: Load: a segment of schema %s, want %s", b.Schema.name, v.schema.name))
		}
		if b.view != nil {
			panic("index: Load: the segment is in a view")
		}
		b.view = v
		groups += len(b.RowGroups)
	}
	if groups == 0 {
		return
	}
	codes := v.joinDictionaries(batches)
	for i, b := range batches {
		b.recode(codes[i])
	}
	// Batches are merged with one another before any query has to wait.
	rows := batches[0].rows()
	if len(batches) > 1 {
		t := newTable(v.schema)
		for _, b := range batches {
			m := t.merge(b.rows())
			m.commit()
			t = m.next
		}
		rows = loadedRows{groups: t.groups, ids: t.ids(), tombstones: t.tombstones}
	}
	v.changing.Lock()
	defer v.changing.Unlock()
	m := v.table.merge(rows)
	v.mu.Lock()
	defer v.mu.Unlock()
	m.commit()
	m.next.loads = v.table.loads - 1
	v.table = m.next
	v.table.rewrite()
}

// joinDictionaries adds the values of batches to the view's dictionaries, which keep
// their codes until the load is over, and returns what the batches' codes become.
func (v *View) joinDictionaries(batches []*Batch) [][][]int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.table.loads++
	codes := make([][][]int64, len(batches))
	for i, b := range batches {
		codes[i] = make([][]int64, len(b.Dictionaries))
		for col, d := range b.Dictionaries {
			if d != nil {
				codes[i][col] = v.table.dictionaries[col].join(d)
			}
		}
	}
	return codes
}

// recode replaces the codes of all rows; nil leaves a column as it is.
func (b *Batch) recode(codes [][]int64) {
	b.Dictionaries = nil
	for col, to := range codes {
		if to == nil {
			continue
		}
		for _, g := range b.RowGroups {
			x := &g.Columns[col].Values
			values := make([]int64, g.Rows())
			for row := range values {
				values[row] = to[x.At(row)]
			}
			*x = PackInts(values, nil)
		}
	}
}

// rows returns the batch's rows for a table.
func (b *Batch) rows() loadedRows {
	live := 0
	for _, g := range b.RowGroups {
		live += g.liveCount
	}
	r := loadedRows{groups: b.RowGroups, ids: make([]uint32, 0, live), tombstones: map[Key]int64{}}
	for n, g := range b.RowGroups {
		for row := range g.Rows() {
			if g.Live.Has(row) {
				r.ids = append(r.ids, ordinal(n, row))
			} else {
				r.tombstones[g.Key(row)] = g.Revision.At(row)
			}
		}
	}
	return r
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
