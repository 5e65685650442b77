package segment

import (
	"fmt"
	"slices"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Merge makes one segment of several. Of the documents with one key the newest
// counts, as View.Apply says, and those for which drop holds are left out; nil drops
// none. drop must not keep its document. It panics unless all groups of the segments
// are decoded, and when one is of another schema; it returns ErrTooLarge, wrapped,
// when the result would exceed a segment's bounds.
func Merge(s *columnar.Schema, segments []*Segment, drop func(*columnar.Document) bool) (Encoded, error) {
	m := merger{schema: s}
	for _, g := range segments {
		if g.schema != s {
			panic(fmt.Sprintf("index: Merge: a segment of schema %s, want %s", g.schema.Name(), s.Name()))
		}
		g.mustBeWhole("Merge")
		m.addSource(g)
	}
	m.choose(drop)
	e, err := m.write()
	if err != nil {
		return Encoded{}, fmt.Errorf("merge %d segments: %w", len(segments), err)
	}
	return e, nil
}

type merger struct {
	schema  *columnar.Schema
	sources []*source
	chosen  []chosenRow // in the order of keys
}

// source is a segment and its next row.
type source struct {
	*Segment
	number   uint32
	used     []columnar.Bits // by Col: the codes that the chosen rows have
	row      int             // the next
	key      columnar.Key    // of the next row, and so on
	revision int64
	live     bool
}

// chosenRow is a row of the result.
type chosenRow struct {
	visible int64
	source  uint32
	row     uint32 // in the source
}

func (m *merger) addSource(g *Segment) {
	s := &source{Segment: g, row: -1, used: make([]columnar.Bits, len(g.batch.Dictionaries))}
	for col, d := range g.batch.Dictionaries {
		if d != nil {
			s.used[col] = columnar.NewBits(d.Span())
		}
	}
	m.sources = append(m.sources, s)
}

// advance goes to the next row, if there is one.
func (s *source) advance() bool {
	s.row++
	if s.row == s.rows {
		return false
	}
	g, row := s.at(s.row)
	s.key, s.revision, s.live = g.Key(row), g.Revision.At(row), g.Live.Has(row)
	return true
}

func (s *source) at(row int) (*columnar.RowGroup, int) {
	return s.batch.RowGroups[row/columnar.MaxRowGroup], row % columnar.MaxRowGroup
}

func (s *source) visible() int64 {
	g, row := s.at(s.row)
	return g.Visible.At(row)
}

// choose finds the rows of the result. The sources are merged key by key.
func (m *merger) choose(drop func(*columnar.Document) bool) {
	var open []*source
	for i, s := range m.sources {
		if s.number = uint32(i); s.advance() {
			open = append(open, s)
		}
	}
	for len(open) > 0 {
		s, visible := newest(open)
		if drop == nil || !s.dropped(visible, drop) {
			m.chosen = append(m.chosen, chosenRow{visible, s.number, uint32(s.row)})
			s.use()
		}
		key := s.key
		left := open[:0]
		for _, other := range open {
			if other.key != key || other.advance() {
				left = append(left, other)
			}
		}
		open = left
	}
}

// newest returns the source whose next row counts, of those with the least key, and
// from when it is visible.
func newest(open []*source) (*source, int64) {
	best, visible := open[0], open[0].visible()
	for _, s := range open[1:] {
		order := s.key.Compare(best.key)
		switch {
		case order > 0 || order == 0 && s.revision < best.revision:
		case order < 0 || s.revision > best.revision:
			best, visible = s, s.visible()
		default:
			visible = max(visible, s.visible())
			if !s.live {
				best = s
			}
		}
	}
	return best, visible
}

func (s *source) dropped(visible int64, drop func(*columnar.Document) bool) bool {
	g, row := s.at(s.row)
	d := g.Document(row, s.batch.Dictionaries)
	d.Visible = visible
	return drop(&d)
}

// use notes that the result has the codes of the next row.
func (s *source) use() {
	if !s.live {
		return // What is decoded for a deleted document means nothing.
	}
	g, row := s.at(s.row)
	for col, used := range s.used {
		if used != nil {
			used.Add(int(g.Columns[col].Values.At(row)))
		}
	}
}

// write makes the segment of the chosen rows, a block at a time.
func (m *merger) write() (Encoded, error) {
	var from [][]*columnar.Dictionary
	var used [][]columnar.Bits
	for _, s := range m.sources {
		from, used = append(from, s.batch.Dictionaries), append(used, s.used)
	}
	dictionaries, codes := mergeDictionaries(m.schema, from, used)
	w := newWriter(m.schema, dictionaries)
	for chosen := range slices.Chunk(m.chosen, columnar.MaxRowGroup) {
		group := columnar.NewRowGroup(m.schema)
		for _, c := range chosen {
			g, row := m.sources[c.source].at(int(c.row))
			group.AppendRow(g, row, c.visible)
		}
		for col, d := range dictionaries {
			if d == nil {
				continue
			}
			raw := group.Columns[col].Values.Raw
			for i, c := range chosen {
				raw[i] = codes[c.source][col][raw[i]]
			}
		}
		w.add(group)
	}
	return w.finish()
}
