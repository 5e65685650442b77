package columnar

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"slices"
)

// dictionary numbers the values of a Keyword column and the sets of values that
// documents hold. A document's code is 0 for no value, 2v+2 for value v alone and
// 2s+1 for set s of two or more.
type Dictionary struct {
	seed    maphash.Seed
	Blob    []byte
	Ends    []uint32 // value v is blob[ends[v-1]:ends[v]]
	slots   []uint32 // open addressing by hash; a value's number + 1, 0 is free
	Sets [][]uint32
	setNumbers    map[string]uint32 // by the members' numbers
	checked int               // how many values and sets there were when recode last looked
}

func NewDictionary() *Dictionary { return &Dictionary{seed: maphash.MakeSeed()} }

func (d *Dictionary) Value(v uint32) []byte {
	start := uint32(0)
	if v > 0 {
		start = d.Ends[v-1]
	}
	return d.Blob[start:d.Ends[v]]
}

// slot is where value is in slots, or would be.
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

func (d *Dictionary) number(value []byte) uint32 {
	if 4*len(d.Ends) >= 3*len(d.slots) {
		d.slots = make([]uint32, max(8, 2*len(d.slots)))
		for v := range d.Ends {
			d.slots[d.slot(d.Value(uint32(v)))] = uint32(v) + 1
		}
	}
	i := d.slot(value)
	if d.slots[i] == 0 {
		d.Blob = append(d.Blob, value...)
		d.Ends = append(d.Ends, uint32(len(d.Blob)))
		d.slots[i] = uint32(len(d.Ends))
	}
	return d.slots[i] - 1
}

// code numbers the values of a document's cell.
func (d *Dictionary) code(c cell) int64 {
	if c.count == 0 {
		return 0
	}
	v, list := nextString(c.list)
	first := d.number(v)
	if c.count == 1 {
		return 2*int64(first) + 2
	}
	numbers := append(make([]uint32, 0, c.count), first)
	for len(list) > 0 {
		v, list = nextString(list)
		numbers = append(numbers, d.number(v))
	}
	return d.setCode(numbers)
}

func (d *Dictionary) setCode(numbers []uint32) int64 {
	slices.Sort(numbers)
	name := setName(numbers)
	s, ok := d.setNumbers[name]
	if !ok {
		if d.setNumbers == nil {
			d.setNumbers = map[string]uint32{}
		}
		s = uint32(len(d.Sets))
		d.setNumbers[name] = s
		d.Sets = append(d.Sets, numbers)
	}
	return 2*int64(s) + 1
}

func setName(numbers []uint32) string {
	name := make([]byte, 0, 4*len(numbers))
	for _, n := range numbers {
		name = binary.BigEndian.AppendUint32(name, n)
	}
	return string(name)
}

// codes are the codes of documents that hold any of the values.
func (d *Dictionary) codes(values []string) []int64 {
	codes := make([]int64, 0, len(values))
	for _, value := range values {
		if v, ok := d.find([]byte(value)); ok {
			codes = append(codes, 2*int64(v)+2)
		}
	}
	if len(codes) == 0 || len(d.Sets) == 0 {
		return codes
	}
	wanted := codeSet(codes, d.Span())
	for s, numbers := range d.Sets {
		for _, n := range numbers {
			if v := 2*uint64(n) + 2; wanted[v>>6]>>(v&63)&1 != 0 {
				codes = append(codes, 2*int64(s)+1)
				break
			}
		}
	}
	return codes
}

// span is one more than the greatest code.
func (d *Dictionary) Span() int { return 2*max(len(d.Ends), len(d.Sets)) + 2 }

func codeSet(codes []int64, span int) []uint64 {
	set := make([]uint64, (span+63)/64)
	for _, c := range codes {
		set[c>>6] |= 1 << (c & 63)
	}
	return set
}

// worn says that enough values and sets were added since the last look for it to
// be worth finding out how many are still in use.
func (d *Dictionary) needsRewrite() bool { return len(d.Ends)+len(d.Sets) > 2*d.checked+MaxRowGroup }

// without returns a dictionary of the codes in use only, and what each old code
// becomes; or nil when most are in use.
func (d *Dictionary) without(used []uint64) (*Dictionary, []int64) {
	n := 0
	for _, w := range used {
		n += bits.OnesCount64(w)
	}
	d.checked = len(d.Ends) + len(d.Sets)
	if 2*n > d.checked {
		return nil, nil
	}
	fresh := NewDictionary()
	codes := make([]int64, d.Span())
	for w, word := range used {
		for ; word != 0; word &= word - 1 {
			code := int64(w<<6 + bits.TrailingZeros64(word))
			codes[code] = fresh.adopt(d, code)
		}
	}
	fresh.checked = len(fresh.Ends) + len(fresh.Sets)
	return fresh, codes
}

func (d *Dictionary) adopt(old *Dictionary, code int64) int64 {
	switch {
	case code == 0:
		return 0
	case code&1 == 0:
		return 2*int64(d.number(old.Value(uint32(code-2)/2))) + 2
	}
	members := old.Sets[code/2]
	numbers := make([]uint32, len(members))
	for i, m := range members {
		numbers[i] = d.number(old.Value(m))
	}
	return d.setCode(numbers)
}

func (d *Dictionary) bytes() int {
	n := cap(d.Blob) + 4*cap(d.Ends) + 4*cap(d.slots) + 24*cap(d.Sets)
	for _, m := range d.Sets {
		// A set is there twice, as its members and as its name in the map.
		n += 8*len(m) + 48
	}
	return n
}

// take makes an empty dictionary one of all values and sets of another, with the
// same numbers. It shares memory with the other.
func (d *Dictionary) take(from *Dictionary) {
	d.Blob, d.Ends, d.Sets = slices.Clip(from.Blob), slices.Clip(from.Ends), slices.Clip(from.Sets)
	size := 8
	for 4*len(d.Ends) >= 3*size {
		size *= 2
	}
	d.slots = make([]uint32, size)
	for v := range d.Ends {
		d.slots[d.slot(d.Value(uint32(v)))] = uint32(v) + 1
	}
	if len(d.Sets) > 0 {
		d.setNumbers = make(map[string]uint32, len(d.Sets))
	}
	for s, numbers := range d.Sets {
		d.setNumbers[setName(numbers)] = uint32(s)
	}
	d.checked = len(d.Ends) + len(d.Sets)
}

// join adds the values and sets of another dictionary, all of which are in use, and
// returns what each of its codes becomes; nil when all stay.
func (d *Dictionary) join(from *Dictionary) []int64 {
	if len(d.Ends) == 0 {
		d.take(from)
		return nil
	}
	before := len(d.Ends) + len(d.Sets)
	codes := make([]int64, from.Span())
	same := true
	for v := range from.Ends {
		code := 2*v + 2
		codes[code] = 2*int64(d.number(from.Value(uint32(v)))) + 2
		same = same && codes[code] == int64(code)
	}
	for s, members := range from.Sets {
		code := 2*s + 1
		numbers := make([]uint32, len(members))
		for i, m := range members {
			numbers[i] = uint32(codes[2*m+2]-2) / 2
		}
		codes[code] = d.setCode(numbers)
		same = same && codes[code] == int64(code)
	}
	d.checked += len(d.Ends) + len(d.Sets) - before
	if same {
		return nil
	}
	return codes
}
