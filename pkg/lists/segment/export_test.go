package segment

import (
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Parts is a group taken apart, as doc.go names them.
type Parts struct {
	ID     [16]byte
	Counts [2]uint32
	Frames [][]byte // without compression
}

// TakeApart is the reverse of Assemble, for groups that were encoded here.
func TakeApart(s *columnar.Schema, g Group, data []byte) (Parts, error) {
	r, h, err := openGroup(s, g, data)
	if err != nil {
		return Parts{}, err
	}
	p := Parts{ID: h.id, Counts: [2]uint32{h.rows, h.tombstones}}
	for len(r.Data) > 0 && !r.Bad {
		p.Frames = append(p.Frames, append([]byte{}, r.frame(nil, MaxGroup)...))
	}
	if r.Bad {
		return Parts{}, columnar.ErrFormat
	}
	return p, nil
}

// Assemble makes a group with a right checksum of any parts.
func Assemble(s *columnar.Schema, g Group, p Parts) []byte {
	data := head{p.ID, p.Counts[0], p.Counts[1]}.append(nil, s, g)
	for _, raw := range p.Frames {
		data = appendFrame(data, raw)
	}
	return appendSum(data)
}

// Reseal puts the right checksum under an altered group.
func Reseal(data []byte) []byte { return appendSum(append([]byte{}, data[:len(data)-4]...)) }
