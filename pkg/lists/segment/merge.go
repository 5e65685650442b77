package segment

import (
	"fmt"
	"math"
	"slices"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Merge makes one segment of several. Of the documents with one key the newest
// counts, as View.Apply says, and those for which drop holds are left out; nil drops
// none. drop must not keep its document. It panics unless all groups of the segments
// are decoded, and when one is of another schema; it returns ErrTooLarge, wrapped,
// when the result would exceed a segment's bounds.
func Merge(s *columnar.Schema, segments []*Segment, drop func(*columnar.Document) bool) (Encoded, error) {
	divided, err := Divide(s, segments, drop, math.MaxInt)
	if err != nil {
		return Encoded{}, err
	}
	return divided[0].Encoded, nil
}

// Division is one of the segments that others were divided into: it begins with the
// ID From.
type Division struct {
	From [16]byte
	Encoded
}

// Divide merges segments as Merge does into segments of so many documents each, by
// their IDs, the last of which has up to half as many more. Documents of one ID are
// never parted.
func Divide(s *columnar.Schema, segments []*Segment, drop func(*columnar.Document) bool, rows int) ([]Division, error) {
	m := merger{schema: s}
	for _, g := range segments {
		if g.schema != s {
			panic(fmt.Sprintf("index: Merge: a segment of schema %s, want %s", g.schema.Name(), s.Name()))
		}
		g.mustBeWhole("Merge")
		m.addSource(g)
	}
	m.choose(drop)
	var out []Division
	for rest := m.chosen; len(out) == 0 || len(rest) > 0; {
		n := len(rest)
		if n-rows > rows/2 {
			for n = rows; n < len(rest) && m.id(rest[n]) == m.id(rest[n-1]); n++ {
			}
		}
		d := Division{}
		if n > 0 {
			d.From = m.id(rest[0])
		}
		var err error
		if d.Encoded, err = m.write(rest[:n]); err != nil {
			return nil, fmt.Errorf("merge %d segments: %w", len(segments), err)
		}
		out, rest = append(out, d), rest[n:]
	}
	return out, nil
}

// id is the ID of a chosen row.
func (m *merger) id(c chosenRow) [16]byte {
	g, row := m.sources[c.source].at(int(c.row))
	return g.Key(row).ID
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
	row      int          // the next
	key      columnar.Key // of the next row, and so on
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
	m.sources = append(m.sources, &source{Segment: g, row: -1})
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

// used returns the codes that rows have, by source and Col.
func (m *merger) used(rows []chosenRow) [][]columnar.Bits {
	used := make([][]columnar.Bits, len(m.sources))
	for i, s := range m.sources {
		used[i] = make([]columnar.Bits, len(s.batch.Dictionaries))
		for col, d := range s.batch.Dictionaries {
			if d != nil {
				used[i][col] = columnar.NewBits(d.Span())
			}
		}
	}
	for _, c := range rows {
		g, row := m.sources[c.source].at(int(c.row))
		if !g.Live.Has(row) {
			continue // What is decoded for a deleted document means nothing.
		}
		for col, used := range used[c.source] {
			if used != nil {
				used.Add(int(g.Columns[col].Values.At(row)))
			}
		}
	}
	return used
}

// write makes the segment of chosen rows, a block at a time.
func (m *merger) write(rows []chosenRow) (Encoded, error) {
	var from [][]*columnar.Dictionary
	for _, s := range m.sources {
		from = append(from, s.batch.Dictionaries)
	}
	dictionaries, codes := mergeDictionaries(m.schema, from, m.used(rows))
	w := newWriter(m.schema, dictionaries)
	for chosen := range slices.Chunk(rows, columnar.MaxRowGroup) {
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
