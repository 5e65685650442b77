package columnar

import "slices"

// bigramIndex has, for each pair of adjacent bytes within a value of the searched
// text, the rows of a row group that have it. A search reads only the text of rows
// that have all bigrams of a token, and no text for a token of two bytes.
type bigramIndex struct {
	sets    map[uint16]*RowSet // of bigrams that many rows have; the first byte is the higher one
	bigrams []uint16           // the others, ascending
	ends    []uint32           // the rows of bigram i are rows[ends[i-1]:ends[i]]
	rows    []uint16
}

// maxListedRows is how many rows are listed at most; more take less room as a set.
const maxListedRows = 4 * rowWords

// bigramIndexer makes indexes; it keeps its memory from one to the next.
type bigramIndexer struct {
	last   [1 << 16]uint16 // one more than the last row that a bigram was seen in
	counts [1 << 16]uint16 // how many rows have a bigram
	ends   [1 << 16]uint32 // where the rows of a bigram end in rows
	pairs  []uint16        // the bigrams of each row, once each
	starts []uint32        // where those of a row start in pairs
	rows   []uint16        // the rows of each bigram
}

func (x *bigramIndexer) build(t *TextRows) *bigramIndex {
	x.scan(t)
	total := uint32(0)
	for pair, n := range x.counts {
		x.ends[pair] = total
		total += uint32(n)
	}
	x.rows = slices.Grow(x.rows[:0], int(total))[:total]
	for row, start := range x.starts[:len(x.starts)-1] {
		for _, pair := range x.pairs[start:x.starts[row+1]] {
			x.rows[x.ends[pair]] = uint16(row)
			x.ends[pair]++
		}
	}
	index := &bigramIndex{sets: map[uint16]*RowSet{}}
	for pair, n := range x.counts {
		if first, second := pair>>8, pair&0xff; n > 0 && first < EndColumn && second < EndColumn {
			index.add(uint16(pair), x.rows[x.ends[pair]-uint32(n):x.ends[pair]])
		}
	}
	index.bigrams, index.ends, index.rows = slices.Clip(index.bigrams), slices.Clip(index.ends), slices.Clip(index.rows)
	return index
}

func (x *bigramIndexer) scan(t *TextRows) {
	clear(x.last[:])
	clear(x.counts[:])
	x.pairs, x.starts = x.pairs[:0], append(x.starts[:0], 0)
	for row := range len(t.Starts) - 1 {
		pair := uint16(EndColumn)
		for _, b := range t.Row(row) {
			if pair = pair<<8 | uint16(b); x.last[pair] != uint16(row)+1 {
				x.last[pair] = uint16(row) + 1
				x.counts[pair]++
				x.pairs = append(x.pairs, pair)
			}
		}
		x.starts = append(x.starts, uint32(len(x.pairs)))
	}
}

func (s *bigramIndex) add(pair uint16, rows []uint16) {
	if len(rows) <= maxListedRows {
		s.bigrams = append(s.bigrams, pair)
		s.rows = append(s.rows, rows...)
		s.ends = append(s.ends, uint32(len(s.rows)))
		return
	}
	set := new(RowSet)
	set.addAll(rows)
	s.sets[pair] = set
}

func (s *RowSet) addAll(rows []uint16) {
	for _, row := range rows {
		s.add(int(row & rowMask))
	}
}

// narrow keeps the rows that have all bigrams of a token, and says whether all of
// those have the token.
func (s *bigramIndex) narrow(token []byte, rows *RowSet) (exact bool) {
	for i := 1; i < len(token) && !rows.Empty(); i++ {
		pair := uint16(token[i-1])<<8 | uint16(token[i])
		if set := s.sets[pair]; set != nil {
			rows.And(set)
			continue
		}
		var few RowSet
		few.addAll(s.listed(pair))
		rows.And(&few)
	}
	return len(token) == 2 || rows.Empty()
}

// listed returns the rows of a bigram that few rows have, or none.
func (s *bigramIndex) listed(pair uint16) []uint16 {
	n, ok := slices.BinarySearch(s.bigrams, pair)
	if !ok {
		return nil
	}
	start := uint32(0)
	if n > 0 {
		start = s.ends[n-1]
	}
	return s.rows[start:s.ends[n]]
}

func (s *bigramIndex) bytes() int {
	return 6*cap(s.bigrams) + 2*cap(s.rows) + (8*rowWords+32)*len(s.sets) + 144
}
