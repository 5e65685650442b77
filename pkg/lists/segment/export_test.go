package segment

import "encoding/binary"

// SegmentParts is a group taken apart, as doc.go names them; Counts are those of a
// core.
type SegmentParts struct {
	ID     [16]byte
	Counts [2]uint64
	Frames [][]byte // without compression
}

// TakeApart is the reverse of Assemble, for groups that were encoded here.
func TakeApart(s *Schema, g ColumnGroup, data []byte) (SegmentParts, error) {
	r, id, err := s.openGroup(g, data)
	if err != nil {
		return SegmentParts{}, err
	}
	p := SegmentParts{ID: id}
	if g == Core {
		p.Counts = [2]uint64{r.uvarint(), r.uvarint()}
	}
	for len(r.data) > 0 && !r.bad {
		p.Frames = append(p.Frames, append([]byte{}, r.frame(nil, MaxGroup)...))
	}
	if r.bad {
		return SegmentParts{}, ErrFormat
	}
	return p, nil
}

// Assemble makes a group with a right checksum of any parts.
func Assemble(s *Schema, g ColumnGroup, p SegmentParts) []byte {
	data := s.appendHead(nil, g, p.ID)
	if g == Core {
		data = binary.AppendUvarint(data, p.Counts[0])
		data = binary.AppendUvarint(data, p.Counts[1])
	}
	for _, raw := range p.Frames {
		data = appendFrame(data, raw)
	}
	return sealGroup(data)
}

// Reseal puts the right checksum under an altered group.
func Reseal(data []byte) []byte { return sealGroup(append([]byte{}, data[:len(data)-4]...)) }
