package columnar

import "slices"

// bigramIndex has, for each pair of adjacent bytes within a value of the searched
// text, the rows of a row group that have it. A search reads only the text of rows
// that have all bigrams of a token, and no text for a token of one or two bytes, for
// which the bigrams tell all.
type bigramIndex struct {
	bigrams []uint16  // ascending; the first byte is the higher one
	lists   []listRef // of the rows of each bigram
	sets    []RowSet
	deltas  []byte // of bigrams that few rows have, as appendDeltas writes them
}

// listRef says where the rows of a bigram are: the lower bits are an index in deltas,
// or in sets.
type listRef uint32

const (
	refDeltas listRef = 1 << 31
	refShared listRef = 1 << 30 // several bigrams share the set: its rows have one of them
	refIndex          = refShared - 1
)

// maxDeltaRows is how many rows a delta-encoded list has at most. A row takes one
// byte, but reading the list takes longer than reading a set.
const maxDeltaRows = 256

// A row group with text in many scripts has more bigrams than are worth a set each.
// Those after the first ownSets share some.
const (
	ownSets    = 2048
	sharedSets = 256
)

// bigramIndexer makes indexes; it keeps its memory from one to the next.
type bigramIndexer struct {
	numbers [1 << 16]uint16 // number of a bigram's set; 0 for none yet
	seen    [1 << 10]uint64 // which bigrams occur, a bit for each
	block   [1 << 12]uint64 // of 64 rows, those that have a bigram, by number of its set
	sets    []scratchSet    // by number
	count   int             // how many own sets there are
	made    bigramIndex
}

// scratchSet is a RowSet with padding: the n-th words of adjacent sets, 512 bytes
// apart, would compete for few cache lines.
type scratchSet struct {
	RowSet
	_ [64]byte
}

// noSet is the number of a set that nothing reads: that of pairs that begin with the
// end of a value or of a column.
const noSet = 1

func (s *bigramIndexer) build(t *TextRows) *bigramIndex {
	s.reset()
	rows := len(t.Starts) - 1
	previous := uint16(EndColumn)
	for first := 0; first < rows; first += 64 {
		for row := first; row < min(first+64, rows); row++ {
			previous = s.add(t.Row(row), previous, 1<<(row&63))
		}
		// To write to a set for every byte would take longer than all the rest.
		for n := range s.sets {
			if word := s.block[n]; word != 0 {
				s.sets[n].RowSet[first>>6] = word
				s.block[n] = 0
			}
		}
	}
	return s.write()
}

// add sets a row's bit for each of its bigrams and returns its last byte.
func (s *bigramIndexer) add(row []byte, previous uint16, bit uint64) uint16 {
	for _, b := range row {
		pair := previous<<8 | uint16(b)
		previous = uint16(b)
		n := s.numbers[pair]
		if n == 0 {
			n = s.number(pair)
		}
		s.block[n&(1<<12-1)] |= bit
	}
	return previous
}

func (s *bigramIndexer) reset() {
	clear(s.numbers[:])
	clear(s.seen[:])
	for b := range 256 {
		s.numbers[EndColumn<<8|b] = noSet
		s.numbers[EndValue<<8|b] = noSet
	}
	s.count = 0
	s.sets = slices.Grow(s.sets[:0], 1024)[:noSet+1]
	clear(s.sets)
}

// number assigns a set to a bigram.
func (s *bigramIndexer) number(pair uint16) uint16 {
	s.seen[pair>>6] |= 1 << (pair & 63)
	n := noSet + 1 + s.count
	if s.count < ownSets {
		s.count++
	} else {
		n = noSet + 1 + ownSets + int(uint32(pair)*2654435761>>16)%sharedSets
	}
	for len(s.sets) <= n {
		s.sets = append(s.sets, scratchSet{})
	}
	s.numbers[pair] = uint16(n)
	return uint16(n)
}

func (s *bigramIndexer) write() *bigramIndex {
	m := &s.made
	m.bigrams, m.lists, m.sets, m.deltas = m.bigrams[:0], m.lists[:0], m.sets[:0], m.deltas[:0]
	shared := make([]listRef, sharedSets)
	for seen := range Bits(s.seen[:]).all() {
		pair := uint16(seen)
		n := int(s.numbers[pair])
		m.bigrams = append(m.bigrams, pair)
		if n <= noSet+ownSets {
			m.lists = append(m.lists, m.add(&s.sets[n].RowSet))
			continue
		}
		r := &shared[n-noSet-ownSets-1]
		if *r == 0 {
			*r = m.addSet(&s.sets[n].RowSet) | refShared
		}
		m.lists = append(m.lists, *r)
	}
	return &bigramIndex{
		bigrams: slices.Clone(m.bigrams), lists: slices.Clone(m.lists),
		sets: slices.Clone(m.sets), deltas: slices.Clone(m.deltas),
	}
}

func (s *bigramIndex) add(rows *RowSet) listRef {
	if rows.Count() > maxDeltaRows {
		return s.addSet(rows)
	}
	r := refDeltas | listRef(len(s.deltas))
	s.deltas = appendDeltas(s.deltas, rows)
	return r
}

func (s *bigramIndex) addSet(rows *RowSet) listRef {
	s.sets = append(s.sets, *rows)
	return listRef(len(s.sets) - 1)
}

// appendDeltas writes a set of rows in ascending order: of each row the difference to
// the one before, of the first to -1, in one byte. 255 is 254 more without a row, and
// 0 is the end.
func appendDeltas(dst []byte, rows *RowSet) []byte {
	last := -1
	for row := range rows.all() {
		delta := row - last
		for ; delta > 254; delta -= 254 {
			dst = append(dst, 255)
		}
		dst = append(dst, byte(delta))
		last = row
	}
	return append(dst, 0)
}

// readDeltas adds the rows of a list to rows.
func readDeltas(list []byte, rows *RowSet) {
	row := -1
	for _, delta := range list {
		switch delta {
		case 0:
			return
		case 255:
			row += 254
		default:
			row += int(delta)
			rows.add(row & rowMask)
		}
	}
}

// narrow keeps the rows that have all bigrams of a token, and says whether all of
// those have the token.
func (s *bigramIndex) narrow(token []byte, rows *RowSet) (exact bool) {
	if len(token) == 1 {
		return s.narrowByte(token[0], rows)
	}
	exact = len(token) == 2
	for i := 1; i < len(token) && !rows.Empty(); i++ {
		n, ok := slices.BinarySearch(s.bigrams, uint16(token[i-1])<<8|uint16(token[i]))
		if !ok {
			*rows = RowSet{}
			return true
		}
		ref := s.lists[n]
		exact = exact && ref&refShared == 0
		if ref&refDeltas == 0 {
			rows.And(&s.sets[ref&refIndex])
			continue
		}
		var few RowSet
		readDeltas(s.deltas[ref&refIndex:], &few)
		rows.And(&few)
	}
	return exact
}

// narrowByte keeps the rows that have a bigram which begins with b, as every byte of a
// value does: the last one with EndValue.
func (s *bigramIndex) narrowByte(b byte, rows *RowSet) (exact bool) {
	n, _ := slices.BinarySearch(s.bigrams, uint16(b)<<8)
	exact = true
	var some RowSet
	for ; n < len(s.bigrams) && s.bigrams[n]>>8 == uint16(b); n++ {
		ref := s.lists[n]
		exact = exact && ref&refShared == 0
		if ref&refDeltas != 0 {
			readDeltas(s.deltas[ref&refIndex:], &some)
		} else {
			some.Or(&s.sets[ref&refIndex])
		}
	}
	rows.And(&some)
	return exact
}

func (s *bigramIndex) bytes() int {
	return 6*cap(s.bigrams) + 8*rowWords*cap(s.sets) + cap(s.deltas) + 96
}
