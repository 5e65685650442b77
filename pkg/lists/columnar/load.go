package columnar

import "fmt"

// Load brings the documents of segments into the view, with the same meaning as
// Apply of them, at once for all. It is fast, because it takes the segments' own
// chunks; the view owns the segments from then on. Segments may lack groups of
// text: then queries that need them are to wait for Fill. It panics when a segment
// is of another schema or already in a view.
func (v *View) Load(segments ...*Segment) {
	rows := 0
	for _, g := range segments {
		if g.schema != v.schema {
			panic(fmt.Sprintf("index: Load: a segment of schema %s, want %s", g.schema.name, v.schema.name))
		}
		if g.view != nil {
			panic("index: Load: the segment is in a view")
		}
		g.view = v
		rows += g.rows
	}
	if rows == 0 {
		return
	}
	codes := v.reserve(segments)
	for i, g := range segments {
		g.recode(codes[i])
	}
	// What the segments are to one another is settled before anyone waits.
	r := segments[0].run()
	if len(segments) > 1 {
		t := newTable(v.schema)
		for _, g := range segments {
			a := t.merge(g.run())
			a.commit()
			t = a.next
		}
		r = loadedRows{groups: t.groups, ids: t.orderings[ByID].Load().sets[0], tombstones: t.tombstones}
	}
	v.changing.Lock()
	defer v.changing.Unlock()
	a := v.table.merge(r)
	v.mu.Lock()
	defer v.mu.Unlock()
	a.commit()
	a.next.loads = v.table.loads - 1
	v.table = a.next
	v.table.rewrite()
}

// reserve adds the values of segments to the dictionaries, which keep their codes
// until the chunks are in, and returns what the segments' codes become.
func (v *View) reserve(segments []*Segment) [][][]int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.table.loads++
	codes := make([][][]int64, len(segments))
	for i, g := range segments {
		codes[i] = make([][]int64, len(g.dictionaries))
		for col, d := range g.dictionaries {
			if d != nil {
				codes[i][col] = v.table.dictionaries[col].join(d)
			}
		}
	}
	return codes
}

// recode replaces the codes of all chunks; nil leaves a column as it is.
func (g *Segment) recode(codes [][]int64) {
	g.dictionaries = nil
	values := make([]int64, MaxRowGroup)
	for col, to := range codes {
		if to == nil {
			continue
		}
		for _, c := range g.groups {
			x := &c.Columns[col].Values
			for row := range c.Rows() {
				values[row] = to[x.At(row)]
			}
			*x = PackInts(values[:c.Rows()], nil)
		}
	}
}

// Fill gives a segment that is in the view a group of text; one that it has stays
// as it is. Queries go on while it decodes. Errors are as of Segment.Decode, and
// the view is as it was then. It panics when the segment is not in the view.
func (v *View) Fill(g *Segment, group ColumnGroup, data []byte) error {
	if g.view != v {
		panic("index: Fill: the segment is not in this view")
	}
	blocks, err := g.decodeText(group, data)
	if err != nil {
		return err
	}
	v.changing.Lock()
	defer v.changing.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if g.decoded.Has(group) {
		return nil
	}
	for i, c := range g.groups {
		// A chunk of which nothing was live may be gone.
		if c.Rows() > 0 {
			blocks[i].give(c, int(group-SearchText))
		}
	}
	g.decoded |= SetOf(group)
	v.table.rewrite()
	return nil
}
