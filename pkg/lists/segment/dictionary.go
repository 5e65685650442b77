package segment

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/commerce-integration/service/pkg/base/strictbinary"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// appendDictionary writes a sorted dictionary.
func appendDictionary(dst []byte, d *columnar.Dictionary) []byte {
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
		next := uint32(0)
		for _, m := range members {
			dst = binary.AppendUvarint(dst, uint64(m-next))
			next = m + 1
		}
	}
	return dst
}

// readDictionaries keeps parts of raw.
func (g *Segment) readDictionaries(raw []byte) bool {
	r := &reader{strictbinary.Reader{Data: raw}}
	g.batch.Dictionaries = columnar.NewDictionaries(g.schema)
	for _, d := range g.batch.Dictionaries {
		if d != nil {
			r.dictionary(d)
		}
	}
	return !r.Bad && len(r.Data) == 0
}

func (r *reader) dictionary(d *columnar.Dictionary) {
	// Each value takes at least the byte of its length, and each set three.
	n := r.Uvarint()
	if r.Fail(n > uint64(len(r.Data))); r.Bad {
		return
	}
	d.Ends = make([]uint32, n)
	end := uint64(0)
	for v := range d.Ends {
		length := r.Uvarint()
		r.Fail(length > uint64(len(r.Data)))
		end += length
		d.Ends[v] = uint32(end)
	}
	if d.Blob = slices.Clip(r.Take(end)); r.Bad {
		return
	}
	for v := 1; v < len(d.Ends); v++ {
		r.Fail(bytes.Compare(d.Value(uint32(v-1)), d.Value(uint32(v))) >= 0)
	}
	n = r.Uvarint()
	if r.Fail(n > uint64(len(r.Data))/3); r.Bad {
		return
	}
	d.Sets = make([][]uint32, n)
	for s := range d.Sets {
		d.Sets[s] = r.members(uint64(len(d.Ends)))
		if r.Fail(s > 0 && slices.Compare(d.Sets[s-1], d.Sets[s]) >= 0); r.Bad {
			return
		}
	}
}

// members reads a set of two or more of so many values.
func (r *reader) members(values uint64) []uint32 {
	n := r.Uvarint()
	if r.Fail(n < 2 || n > uint64(len(r.Data))); r.Bad {
		return nil
	}
	members := make([]uint32, n)
	next := uint64(0)
	for i := range members {
		m := r.Uvarint()
		if r.Fail(m >= values || next+m >= values); r.Bad {
			return nil
		}
		members[i] = uint32(next + m)
		next += m + 1
	}
	return members
}
