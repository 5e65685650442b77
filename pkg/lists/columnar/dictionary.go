package columnar

import (
	"hash/maphash"

	"github.com/commerce-integration/service/pkg/base/strictbinary"
)

// Dictionary numbers the values of a Keyword column. A value is all strings of one
// document, as its cell has them. The code of a document is 0 for no value, and n+1
// for value n.
type Dictionary struct {
	Data []byte
	Ends []uint32 // value n is Data[Ends[n-1]:Ends[n]]

	several []uint32 // codes of the values of two or more strings
	seed    maphash.Seed
	slots   []uint32 // hash table with open addressing: codes, or 0
}

// NewDictionaries returns an empty dictionary for each Keyword, by Col.
func NewDictionaries(s *Schema) []*Dictionary {
	dictionaries := make([]*Dictionary, len(s.columns)+1)
	for i, c := range s.columns {
		if c.Type == Keyword {
			dictionaries[i+1] = &Dictionary{seed: maphash.MakeSeed()}
		}
	}
	return dictionaries
}

// Span is one more than the greatest code.
func (d *Dictionary) Span() int { return len(d.Ends) + 1 }

// Value returns the strings of a code, each behind its length.
func (d *Dictionary) Value(code uint32) []byte {
	switch code {
	case 0:
		return nil
	case 1:
		return d.Data[:d.Ends[0]]
	}
	return d.Data[d.Ends[code-2]:d.Ends[code-1]]
}

// slot is where a value is in slots, or would be.
func (d *Dictionary) slot(value []byte) uint32 {
	mask := uint32(len(d.slots) - 1)
	i := uint32(maphash.Bytes(d.seed, value)) & mask
	for d.slots[i] != 0 && string(d.Value(d.slots[i])) != string(value) {
		i = (i + 1) & mask
	}
	return i
}

// code returns the code of a value, which it adds if need be.
func (d *Dictionary) code(value []byte) uint32 {
	if len(value) == 0 {
		return 0
	}
	if 4*len(d.Ends) >= 3*len(d.slots) {
		d.rehash()
	}
	i := d.slot(value)
	if d.slots[i] == 0 {
		d.Data = append(d.Data, value...)
		d.Ends = append(d.Ends, uint32(len(d.Data)))
		d.slots[i] = uint32(len(d.Ends))
		d.noteSeveral(d.slots[i])
	}
	return d.slots[i]
}

// rehash makes slots for the values there are and one more.
func (d *Dictionary) rehash() {
	size := 8
	for 4*len(d.Ends) >= 3*size {
		size *= 2
	}
	d.slots = make([]uint32, size)
	for code := range uint32(len(d.Ends)) {
		d.slots[d.slot(d.Value(code+1))] = code + 1
	}
}

// index makes a dictionary that was read ready to be looked up.
func (d *Dictionary) index() {
	d.rehash()
	for code := range uint32(len(d.Ends)) {
		d.noteSeveral(code + 1)
	}
}

func (d *Dictionary) noteSeveral(code uint32) {
	r := strictbinary.Reader{Data: d.Value(code)}
	if r.Take(r.Uvarint()); len(r.Data) > 0 {
		d.several = append(d.several, code)
	}
}

// codes returns the codes, as a set, of documents that have any of the strings.
func (d *Dictionary) codes(wanted []string) Bits {
	codes := NewBits(d.Span())
	among := make(map[string]bool, len(wanted))
	for _, s := range wanted {
		among[s] = true
		if len(d.slots) > 0 {
			if code := d.slots[d.slot(appendString(nil, s))]; code != 0 {
				codes.Add(int(code))
			}
		}
	}
	for _, code := range d.several {
		for s := range stringsIn(d.Value(code)) {
			if among[string(s)] {
				codes.Add(int(code))
			}
		}
	}
	return codes
}

func (d *Dictionary) bytes() int {
	return cap(d.Data) + 4*(cap(d.Ends)+cap(d.slots)+cap(d.several))
}
