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
type dictionary struct {
	seed    maphash.Seed
	blob    []byte
	ends    []uint32 // value v is blob[ends[v-1]:ends[v]]
	slots   []uint32 // open addressing by hash; a value's number + 1, 0 is free
	members [][]uint32
	sets    map[string]uint32 // by the members' numbers
	checked int               // how many values and sets there were when recode last looked
}

func newDictionary() *dictionary { return &dictionary{seed: maphash.MakeSeed()} }

func (d *dictionary) value(v uint32) []byte {
	start := uint32(0)
	if v > 0 {
		start = d.ends[v-1]
	}
	return d.blob[start:d.ends[v]]
}

// slot is where value is in slots, or would be.
func (d *dictionary) slot(value []byte) uint32 {
	mask := uint32(len(d.slots) - 1)
	i := uint32(maphash.Bytes(d.seed, value)) & mask
	for d.slots[i] != 0 && string(d.value(d.slots[i]-1)) != string(value) {
		i = (i + 1) & mask
	}
	return i
}

func (d *dictionary) find(value []byte) (uint32, bool) {
	if len(d.slots) == 0 {
		return 0, false
	}
	n := d.slots[d.slot(value)]
	return n - 1, n != 0
}

func (d *dictionary) number(value []byte) uint32 {
	if 4*len(d.ends) >= 3*len(d.slots) {
		d.slots = make([]uint32, max(8, 2*len(d.slots)))
		for v := range d.ends {
			d.slots[d.slot(d.value(uint32(v)))] = uint32(v) + 1
		}
	}
	i := d.slot(value)
	if d.slots[i] == 0 {
		d.blob = append(d.blob, value...)
		d.ends = append(d.ends, uint32(len(d.blob)))
		d.slots[i] = uint32(len(d.ends))
	}
	return d.slots[i] - 1
}

// code numbers the values of a document's cell.
func (d *dictionary) code(c cell) int64 {
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

func (d *dictionary) setCode(numbers []uint32) int64 {
	slices.Sort(numbers)
	name := setName(numbers)
	s, ok := d.sets[name]
	if !ok {
		if d.sets == nil {
			d.sets = map[string]uint32{}
		}
		s = uint32(len(d.members))
		d.sets[name] = s
		d.members = append(d.members, numbers)
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
func (d *dictionary) codes(values []string) []int64 {
	codes := make([]int64, 0, len(values))
	for _, value := range values {
		if v, ok := d.find([]byte(value)); ok {
			codes = append(codes, 2*int64(v)+2)
		}
	}
	if len(codes) == 0 || len(d.members) == 0 {
		return codes
	}
	wanted := codeSet(codes, d.span())
	for s, numbers := range d.members {
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
func (d *dictionary) span() int { return 2*max(len(d.ends), len(d.members)) + 2 }

func codeSet(codes []int64, span int) []uint64 {
	set := make([]uint64, (span+63)/64)
	for _, c := range codes {
		set[c>>6] |= 1 << (c & 63)
	}
	return set
}

// worn says that enough values and sets were added since the last look for it to
// be worth finding out how many are still in use.
func (d *dictionary) worn() bool { return len(d.ends)+len(d.members) > 2*d.checked+chunkRows }

// without returns a dictionary of the codes in use only, and what each old code
// becomes; or nil when most are in use.
func (d *dictionary) without(used []uint64) (*dictionary, []int64) {
	n := 0
	for _, w := range used {
		n += bits.OnesCount64(w)
	}
	d.checked = len(d.ends) + len(d.members)
	if 2*n > d.checked {
		return nil, nil
	}
	fresh := newDictionary()
	codes := make([]int64, d.span())
	for w, word := range used {
		for ; word != 0; word &= word - 1 {
			code := int64(w<<6 + bits.TrailingZeros64(word))
			codes[code] = fresh.adopt(d, code)
		}
	}
	fresh.checked = len(fresh.ends) + len(fresh.members)
	return fresh, codes
}

func (d *dictionary) adopt(old *dictionary, code int64) int64 {
	switch {
	case code == 0:
		return 0
	case code&1 == 0:
		return 2*int64(d.number(old.value(uint32(code-2)/2))) + 2
	}
	members := old.members[code/2]
	numbers := make([]uint32, len(members))
	for i, m := range members {
		numbers[i] = d.number(old.value(m))
	}
	return d.setCode(numbers)
}

func (d *dictionary) bytes() int {
	n := cap(d.blob) + 4*cap(d.ends) + 4*cap(d.slots) + 24*cap(d.members)
	for _, m := range d.members {
		// A set is there twice, as its members and as its name in the map.
		n += 8*len(m) + 48
	}
	return n
}

// take makes an empty dictionary one of all values and sets of another, with the
// same numbers. It shares memory with the other.
func (d *dictionary) take(from *dictionary) {
	d.blob, d.ends, d.members = slices.Clip(from.blob), slices.Clip(from.ends), slices.Clip(from.members)
	size := 8
	for 4*len(d.ends) >= 3*size {
		size *= 2
	}
	d.slots = make([]uint32, size)
	for v := range d.ends {
		d.slots[d.slot(d.value(uint32(v)))] = uint32(v) + 1
	}
	if len(d.members) > 0 {
		d.sets = make(map[string]uint32, len(d.members))
	}
	for s, numbers := range d.members {
		d.sets[setName(numbers)] = uint32(s)
	}
	d.checked = len(d.ends) + len(d.members)
}

// join adds the values and sets of another dictionary, all of which are in use, and
// returns what each of its codes becomes; nil when all stay.
func (d *dictionary) join(from *dictionary) []int64 {
	if len(d.ends) == 0 {
		d.take(from)
		return nil
	}
	before := len(d.ends) + len(d.members)
	codes := make([]int64, from.span())
	same := true
	for v := range from.ends {
		code := 2*v + 2
		codes[code] = 2*int64(d.number(from.value(uint32(v)))) + 2
		same = same && codes[code] == int64(code)
	}
	for s, members := range from.members {
		code := 2*s + 1
		numbers := make([]uint32, len(members))
		for i, m := range members {
			numbers[i] = uint32(codes[2*m+2]-2) / 2
		}
		codes[code] = d.setCode(numbers)
		same = same && codes[code] == int64(code)
	}
	d.checked += len(d.ends) + len(d.members) - before
	if same {
		return nil
	}
	return codes
}
