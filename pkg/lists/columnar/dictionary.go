package columnar

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// Dictionary numbers the values of a Keyword column, and the sets of two or more
// values that documents hold. The code of a document is 0 for no value, 2v+2 for
// value v alone, and 2s+1 for set s.
type Dictionary struct {
	Blob []byte
	Ends []uint32   // value v is Blob[Ends[v-1]:Ends[v]]
	Sets [][]uint32 // numbers of values, ascending

	seed    maphash.Seed
	slots   []uint32          // hash table with open addressing: a value's number + 1, or 0
	sets    map[string]uint32 // the number of a set by setName
	checked int               // how many values and sets there were at the last needsRewrite that was followed
}

func newDictionary() *Dictionary { return &Dictionary{seed: maphash.MakeSeed()} }

// NewDictionaries returns an empty dictionary for each Keyword, by Col.
func NewDictionaries(s *Schema) []*Dictionary {
	dictionaries := make([]*Dictionary, len(s.columns)+1)
	for i, c := range s.columns {
		if c.Type == Keyword {
			dictionaries[i+1] = newDictionary()
		}
	}
	return dictionaries
}

// ValueCode and SetCode return the code of a value alone, and of a set.
func ValueCode[N int | uint32](v N) int64 { return 2*int64(v) + 2 }
func SetCode[N int | uint32](s N) int64   { return 2*int64(s) + 1 }

// Value returns value v.
func (d *Dictionary) Value(v uint32) []byte {
	start := uint32(0)
	if v > 0 {
		start = d.Ends[v-1]
	}
	return d.Blob[start:d.Ends[v]]
}

// Span is one more than the greatest code.
func (d *Dictionary) Span() int { return 2*max(len(d.Ends), len(d.Sets)) + 2 }

func (d *Dictionary) size() int { return len(d.Ends) + len(d.Sets) }

// values returns the values of a code.
func (d *Dictionary) values(code int64) [][]byte {
	switch {
	case code == 0:
		return nil
	case code&1 == 0:
		return [][]byte{d.Value(uint32(code-2) / 2)}
	}
	var values [][]byte
	for _, v := range d.Sets[code/2] {
		values = append(values, d.Value(v))
	}
	return values
}

// slot is where a value is in slots, or would be.
func (d *Dictionary) slot(value []byte) uint32 {
	mask := uint32(len(d.slots) - 1)
	i := uint32(maphash.Bytes(d.seed, value)) & mask
	for d.slots[i] != 0 && string(d.Value(d.slots[i]-1)) != string(value) {
		i = (i + 1) & mask
	}
	return i
}

func (d *Dictionary) find(value []byte) (uint32, bool) {
	if len(d.slots) == 0 {
		return 0, false
	}
	n := d.slots[d.slot(value)]
	return n - 1, n != 0
}

// rehash makes slots for the values there are and one more.
func (d *Dictionary) rehash() {
	size := 8
	for 4*len(d.Ends) >= 3*size {
		size *= 2
	}
	d.slots = make([]uint32, size)
	for v := range d.Ends {
		d.slots[d.slot(d.Value(uint32(v)))] = uint32(v) + 1
	}
}

// number returns the number of a value, which it adds if need be.
func (d *Dictionary) number(value []byte) uint32 {
	if 4*len(d.Ends) >= 3*len(d.slots) {
		d.rehash()
	}
	i := d.slot(value)
	if d.slots[i] == 0 {
		d.Blob = append(d.Blob, value...)
		d.Ends = append(d.Ends, uint32(len(d.Blob)))
		d.slots[i] = uint32(len(d.Ends))
	}
	return d.slots[i] - 1
}

// code returns the code of a document's values, which it adds if need be.
func (d *Dictionary) code(c *cell) int64 {
	switch c.count {
	case 0:
		return 0
	case 1:
		return ValueCode(d.number(c.first()))
	}
	numbers := make([]uint32, 0, c.count)
	for v := range c.strings() {
		numbers = append(numbers, d.number(v))
	}
	return d.setCode(numbers)
}

func (d *Dictionary) setCode(numbers []uint32) int64 {
	slices.Sort(numbers)
	name := setName(numbers)
	s, ok := d.sets[name]
	if !ok {
		if d.sets == nil {
			d.sets = map[string]uint32{}
		}
		s = uint32(len(d.Sets))
		d.sets[name] = s
		d.Sets = append(d.Sets, numbers)
	}
	return SetCode(s)
}

func setName(numbers []uint32) string {
	name := make([]byte, 0, 4*len(numbers))
	for _, n := range numbers {
		name = binary.BigEndian.AppendUint32(name, n)
	}
	return string(name)
}

// codes returns the codes of documents that have any of the values.
func (d *Dictionary) codes(values []string) []int64 {
	codes := make([]int64, 0, len(values))
	for _, value := range values {
		if v, ok := d.find([]byte(value)); ok {
			codes = append(codes, ValueCode(v))
		}
	}
	if len(codes) == 0 || len(d.Sets) == 0 {
		return codes
	}
	wanted := codeBits(codes, d.Span())
	for s, numbers := range d.Sets {
		if slices.ContainsFunc(numbers, func(n uint32) bool { return wanted.Has(int(ValueCode(n))) }) {
			codes = append(codes, SetCode(s))
		}
	}
	return codes
}

func codeBits(codes []int64, span int) Bits {
	set := NewBits(span)
	for _, c := range codes {
		set.Add(int(c))
	}
	return set
}

// needsRewrite says that so many values and sets were added since the last check
// that it pays to find out how many are still in use.
func (d *Dictionary) needsRewrite() bool { return d.size() > 2*d.checked+MaxRowGroup }

// without returns a dictionary of the codes in use only, and what each old code
// becomes; or nil when most are in use.
func (d *Dictionary) without(used Bits) (*Dictionary, []int64) {
	if d.checked = d.size(); 2*used.Count() > d.checked {
		return nil, nil
	}
	merged, codes := MergeDictionaries([]*Dictionary{d}, []Bits{used})
	merged.index()
	return merged, codes[0]
}

// index makes a dictionary that was read or merged ready to be looked up.
func (d *Dictionary) index() {
	d.Blob, d.Ends, d.Sets = slices.Clip(d.Blob), slices.Clip(d.Ends), slices.Clip(d.Sets)
	d.rehash()
	if len(d.Sets) > 0 {
		d.sets = make(map[string]uint32, len(d.Sets))
	}
	for s, numbers := range d.Sets {
		d.sets[setName(numbers)] = uint32(s)
	}
	d.checked = d.size()
}

// join adds the values and sets of another dictionary, all of which are in use, and
// returns what each of its codes becomes; nil when all stay.
func (d *Dictionary) join(from *Dictionary) []int64 {
	if len(d.Ends) == 0 {
		d.Blob, d.Ends, d.Sets = from.Blob, from.Ends, from.Sets
		d.index()
		return nil
	}
	before := d.size()
	codes := make([]int64, from.Span())
	same := true
	for v := range from.Ends {
		code := ValueCode(v)
		codes[code] = ValueCode(d.number(from.Value(uint32(v))))
		same = same && codes[code] == code
	}
	for s, members := range from.Sets {
		code := SetCode(s)
		codes[code] = d.setCode(renumber(members, codes))
		same = same && codes[code] == code
	}
	d.checked += d.size() - before
	if same {
		return nil
	}
	return codes
}

// renumber returns what the members of a set become.
func renumber(members []uint32, codes []int64) []uint32 {
	numbers := make([]uint32, len(members))
	for i, m := range members {
		numbers[i] = uint32(codes[ValueCode(m)]-2) / 2
	}
	slices.Sort(numbers)
	return numbers
}

// MergeDictionaries returns a dictionary of the values and sets of several, sorted:
// values by their bytes, sets by the numbers of their members. codes are, for each
// dictionary, what its codes become. used are the codes in use, by dictionary; nil
// means that all are.
func MergeDictionaries(from []*Dictionary, used []Bits) (merged *Dictionary, codes [][]int64) {
	type term struct {
		from    int
		code    int64
		value   []byte
		members []uint32
	}
	var values, sets []term
	for i, d := range from {
		codes = append(codes, make([]int64, d.Span()))
		wanted := NewBits(len(d.Ends))
		for v := range d.Ends {
			if used == nil || used[i].Has(int(ValueCode(v))) {
				wanted.Add(v)
			}
		}
		for s, members := range d.Sets {
			if used == nil || used[i].Has(int(SetCode(s))) {
				sets = append(sets, term{from: i, code: SetCode(s), members: members})
				for _, m := range members {
					wanted.Add(int(m))
				}
			}
		}
		for v := range wanted.all() {
			values = append(values, term{from: i, code: ValueCode(v), value: d.Value(uint32(v))})
		}
	}
	merged = newDictionary()
	slices.SortFunc(values, func(a, b term) int { return bytes.Compare(a.value, b.value) })
	for i, t := range values {
		if i == 0 || !bytes.Equal(t.value, values[i-1].value) {
			merged.Blob = append(merged.Blob, t.value...)
			merged.Ends = append(merged.Ends, uint32(len(merged.Blob)))
		}
		codes[t.from][t.code] = ValueCode(len(merged.Ends) - 1)
	}
	for i, t := range sets {
		sets[i].members = renumber(t.members, codes[t.from])
	}
	slices.SortFunc(sets, func(a, b term) int { return slices.Compare(a.members, b.members) })
	for i, t := range sets {
		if i == 0 || !slices.Equal(t.members, sets[i-1].members) {
			merged.Sets = append(merged.Sets, t.members)
		}
		codes[t.from][t.code] = SetCode(len(merged.Sets) - 1)
	}
	return merged, codes
}

func (d *Dictionary) bytes() int {
	n := cap(d.Blob) + 4*cap(d.Ends) + 4*cap(d.slots) + 24*cap(d.Sets)
	for _, m := range d.Sets {
		// A set is kept twice: its members, and its name in the map.
		n += 8*len(m) + 48
	}
	return n
}
