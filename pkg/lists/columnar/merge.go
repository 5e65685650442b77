package columnar

import (
	"errors"
	"fmt"
)

// ErrTooLarge says that documents do not fit into one segment: they are more than
// MaxRows, or a group of them would exceed MaxGroup.
var ErrTooLarge = errors.New("too large for a segment of the index")

// MergeSegments makes one segment of several. Of the documents with one key the
// newest counts, as View.Apply says, and those for which drop holds are left out;
// nil drops none. drop must not keep its document. It panics unless all groups of
// the segments are decoded, and when one is of another schema; it returns
// ErrTooLarge, wrapped, when the result would exceed a segment's bounds.
func MergeSegments(s *Schema, segments []*Segment, drop func(*Document) bool) (Encoded, error) {
	for _, g := range segments {
		if g.schema != s {
			panic(fmt.Sprintf("index: MergeSegments: a segment of schema %s, want %s", g.schema.name, s.name))
		}
		g.want("MergeSegments")
	}
	m := merger{schema: s, segments: segments}
	m.choose(drop)
	e, err := m.write()
	if err != nil {
		return Encoded{}, fmt.Errorf("merge %d segments: %w", len(segments), err)
	}
	return e, nil
}

type merger struct {
	schema   *Schema
	segments []*Segment
	used     [][][]uint64 // by segment and Col: the codes that the chosen rows have
	chosen   []chosenRow  // in the order of keys
}

type chosenRow struct {
	visible int64
	segment uint32
	row     uint32 // in the whole segment
}

// choose finds the rows that stay.
func (m *merger) choose(drop func(*Document) bool) {
	heads := make([]head, 0, len(m.segments))
	for i, g := range m.segments {
		used := make([][]uint64, len(m.schema.columns)+1)
		for col, d := range g.dictionaries {
			if d != nil {
				used[col] = make([]uint64, (d.Span()+63)/64)
			}
		}
		m.used = append(m.used, used)
		if h := (head{segment: i, source: g}); h.load() {
			heads = append(heads, h)
		}
	}
	for len(heads) > 0 {
		row := m.newest(heads)
		h := row.head
		if drop == nil || !drop(h.document(m.segments[h.segment], row.visible)) {
			m.take(h, row.visible)
		}
		left := heads[:0]
		for _, other := range heads {
			if other.key != h.key || other.next() {
				left = append(left, other)
			}
		}
		heads = left
	}
}

// head is the next row of a segment.
type head struct {
	segment int
	source  *Segment
	row     int
	key     Key
}

func (h *head) load() bool {
	if h.row == h.source.rows {
		return false
	}
	h.key = h.chunk().Key(h.row & rowMask)
	return true
}

func (h *head) next() bool {
	h.row++
	return h.load()
}

func (h *head) chunk() *RowGroup { return h.source.groups[h.row>>rowShift] }

func (h *head) document(g *Segment, visible int64) *Document {
	d := h.chunk().Document(h.row&rowMask, g.dictionaries)
	d.Visible = visible
	return &d
}

type newestRow struct {
	head    head
	visible int64
}

// newest returns the least key's row that counts.
func (m *merger) newest(heads []head) newestRow {
	best := newestRow{head: heads[0], visible: heads[0].visible()}
	for _, h := range heads[1:] {
		switch d := h.key.Compare(best.head.key); {
		case d > 0:
			continue
		case d < 0:
			best = newestRow{head: h, visible: h.visible()}
			continue
		}
		was, is := best.head.revision(), h.revision()
		switch {
		case is > was:
			best = newestRow{head: h, visible: h.visible()}
		case is == was:
			if h.deleted() {
				best.head = h
			}
			best.visible = max(best.visible, h.visible())
		}
	}
	return best
}

func (h *head) visible() int64  { return h.chunk().Visible.At(h.row & rowMask) }
func (h *head) revision() int64 { return h.chunk().Revision.At(h.row & rowMask) }
func (h *head) deleted() bool   { return !h.chunk().Live.Has(h.row & rowMask) }

func (m *merger) take(h head, visible int64) {
	m.chosen = append(m.chosen, chosenRow{visible: visible, segment: uint32(h.segment), row: uint32(h.row)})
	if h.deleted() {
		return
	}
	c := h.chunk()
	for col, used := range m.used[h.segment] {
		if used != nil {
			code := c.Columns[col].Values.At(h.row & rowMask)
			used[code>>6] |= 1 << (code & 63)
		}
	}
}

// write makes the segment of the chosen rows, a block at a time.
func (m *merger) write() (Encoded, error) {
	from := make([][]*Dictionary, len(m.segments))
	for i, g := range m.segments {
		from[i] = g.dictionaries
	}
	joined, codes := joinDictionaries(m.schema, from, m.used)
	w := newSegmentWriter(m.schema, joined)
	for at := 0; at < len(m.chosen); at += MaxRowGroup {
		c := NewRowGroup(m.schema)
		for _, row := range m.chosen[at:min(at+MaxRowGroup, len(m.chosen))] {
			source := m.segments[row.segment].groups[row.row>>rowShift]
			c.adoptCoded(source, int(row.row&rowMask), row.visible, codes[row.segment])
		}
		w.add(c)
	}
	return w.finish()
}

// adoptCoded adds a row of a segment, deleted or not, with other codes.
func (c *RowGroup) adoptCoded(from *RowGroup, row int, visible int64, codes [][]int64) {
	if !from.Live.Has(row) {
		c.AppendDeleted(from.Key(row), from.Revision.At(row), visible)
		return
	}
	c.AppendRow(from, row)
	last := c.Rows() - 1
	c.Visible.Raw[last] = visible
	for col, to := range codes {
		if to != nil {
			raw := c.Columns[col].Values.Raw
			raw[last] = to[raw[last]]
		}
	}
}
