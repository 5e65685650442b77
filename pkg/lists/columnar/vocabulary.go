package columnar

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// A segment's dictionaries hold what its documents use, in order, so that the same
// documents make the same bytes.

// appendDictionary writes the values and sets of a dictionary in order.
func appendDictionary(dst []byte, d *Dictionary) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(d.Ends)))
	start := uint32(0)
	for _, end := range d.Ends {
		dst = binary.AppendUvarint(dst, uint64(end-start))
		start = end
	}
	dst = append(dst, d.Blob...)
	dst = binary.AppendUvarint(dst, uint64(len(d.Sets)))
	for _, members := range d.Sets {
		dst = binary.AppendUvarint(dst, uint64(len(members)))
		last := -1
		for _, m := range members {
			dst = binary.AppendUvarint(dst, uint64(int(m)-last-1))
			last = int(m)
		}
	}
	return dst
}

// readDictionaries keeps parts of raw.
func (g *Segment) readDictionaries(raw []byte) bool {
	r := &reader{data: raw}
	g.dictionaries = make([]*Dictionary, len(g.schema.columns)+1)
	for i, c := range g.schema.columns {
		if c.Type == Keyword {
			g.dictionaries[i+1] = r.dictionary()
		}
	}
	return !r.bad && len(r.data) == 0
}

func (r *reader) dictionary() *Dictionary {
	d := NewDictionary()
	// Each value takes at least the byte of its length, and each set three.
	n := r.uvarint()
	r.fail(n > uint64(len(r.data)))
	if r.bad {
		return d
	}
	d.Ends = make([]uint32, n)
	end := uint64(0)
	for v := range d.Ends {
		length := r.uvarint()
		r.fail(length > uint64(len(r.data)))
		end += length
		d.Ends[v] = uint32(end)
	}
	d.Blob = slices.Clip(r.take(end))
	if r.bad {
		return d
	}
	for v := 1; v < len(d.Ends); v++ {
		r.fail(bytes.Compare(d.Value(uint32(v-1)), d.Value(uint32(v))) >= 0)
	}
	n = r.uvarint()
	r.fail(n > uint64(len(r.data))/3)
	if r.bad {
		return d
	}
	d.Sets = make([][]uint32, n)
	for s := range d.Sets {
		d.Sets[s] = r.members(len(d.Ends))
		r.fail(s > 0 && slices.Compare(d.Sets[s-1], d.Sets[s]) >= 0)
		if r.bad {
			return d
		}
	}
	return d
}

// members reads a set of two or more of so many values.
func (r *reader) members(values int) []uint32 {
	n := r.uvarint()
	r.fail(n < 2 || n > uint64(len(r.data)))
	if r.bad {
		return nil
	}
	members := make([]uint32, n)
	next := uint64(0)
	for i := range members {
		m := r.uvarint()
		r.fail(m >= uint64(values) || next+m >= uint64(values))
		if r.bad {
			return nil
		}
		members[i] = uint32(next + m)
		next += m + 1
	}
	return members
}

// joinDictionaries makes, for every Keyword column, one dictionary in order of the
// values that several use, and returns what the codes of each become. used has the
// bits of the codes that count; without it all do.
func joinDictionaries(s *Schema, from [][]*Dictionary, used [][][]uint64) (joined []*Dictionary, codes [][][]int64) {
	joined = make([]*Dictionary, len(s.columns)+1)
	codes = make([][][]int64, len(from))
	for i := range codes {
		codes[i] = make([][]int64, len(s.columns)+1)
	}
	for col := range joined {
		if col == 0 || s.Column(Col(col)).Type != Keyword {
			continue
		}
		v := vocabulary{}
		for i := range from {
			var u []uint64
			if used != nil {
				u = used[i][col]
			}
			v.add(from[i][col], u)
		}
		joined[col] = v.join()
		for i := range from {
			codes[i][col] = v.codes[i]
		}
	}
	return joined, codes
}

// vocabulary joins dictionaries of one column.
type vocabulary struct {
	from   []*Dictionary
	codes  [][]int64
	values []term
	sets   []term
}

// term is a value or a set of one of the dictionaries.
type term struct {
	from    int
	code    int64
	value   []byte
	members []uint32
}

func (v *vocabulary) add(d *Dictionary, used []uint64) {
	i := len(v.from)
	v.from = append(v.from, d)
	v.codes = append(v.codes, make([]int64, d.Span()))
	uses := func(code int) bool { return used == nil || used[code>>6]>>(code&63)&1 != 0 }
	wanted := make([]bool, len(d.Ends))
	for n := range d.Ends {
		wanted[n] = uses(2*n + 2)
	}
	for s, members := range d.Sets {
		if !uses(2*s + 1) {
			continue
		}
		v.sets = append(v.sets, term{from: i, code: 2*int64(s) + 1, members: members})
		for _, m := range members {
			wanted[m] = true
		}
	}
	for n, is := range wanted {
		if is {
			v.values = append(v.values, term{from: i, code: 2*int64(n) + 2, value: d.Value(uint32(n))})
		}
	}
}

func (v *vocabulary) join() *Dictionary {
	d := NewDictionary()
	slices.SortFunc(v.values, func(a, b term) int { return bytes.Compare(a.value, b.value) })
	for i, t := range v.values {
		if i == 0 || !bytes.Equal(t.value, v.values[i-1].value) {
			d.Blob = append(d.Blob, t.value...)
			d.Ends = append(d.Ends, uint32(len(d.Blob)))
		}
		v.codes[t.from][t.code] = 2 * int64(len(d.Ends))
	}
	for i := range v.sets {
		t := &v.sets[i]
		numbers := make([]uint32, len(t.members))
		for j, m := range t.members {
			numbers[j] = uint32(v.codes[t.from][2*m+2]/2) - 1
		}
		slices.Sort(numbers)
		t.members = numbers
	}
	slices.SortFunc(v.sets, func(a, b term) int { return slices.Compare(a.members, b.members) })
	for i, t := range v.sets {
		if i == 0 || !slices.Equal(t.members, v.sets[i-1].members) {
			d.Sets = append(d.Sets, t.members)
		}
		v.codes[t.from][t.code] = 2*int64(len(d.Sets)) - 1
	}
	return d
}

// appendKeyword writes the values of a code as a document has them. The dictionary
// is in order.
func appendKeyword(dst []byte, col Col, d *Dictionary, code int64) []byte {
	switch {
	case code == 0:
		return dst
	case code&1 == 0:
		dst = append(dst, byte(col), kindString)
		return appendString(dst, d.Value(uint32(code-2)/2))
	}
	members := d.Sets[code/2]
	dst = append(dst, byte(col), kindStrings)
	dst = binary.AppendUvarint(dst, uint64(len(members)))
	for _, m := range members {
		dst = appendString(dst, d.Value(m))
	}
	return dst
}

func appendString(dst, v []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(v)))
	return append(dst, v...)
}

// appendText writes the values of the column of that rank in a row.
func appendText(dst []byte, col Col, row []byte, rank uint8) []byte {
	for ; rank > 0; rank-- {
		row = row[bytes.IndexByte(row, EndColumn)+1:]
	}
	row = row[:bytes.IndexByte(row, EndColumn)]
	count := bytes.Count(row, []byte{EndValue})
	switch count {
	case 0:
		return dst
	case 1:
		dst = append(dst, byte(col), kindString)
	default:
		dst = append(dst, byte(col), kindStrings)
		dst = binary.AppendUvarint(dst, uint64(count))
	}
	for range count {
		end := bytes.IndexByte(row, EndValue)
		dst = appendString(dst, row[:end])
		row = row[end+1:]
	}
	return dst
}
