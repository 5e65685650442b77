package index

import "github.com/commerce-integration/service/pkg/lists/columnar"

// Segments of manifests that do not tell their bytes before compression are
// taken for this many times larger. Documents of the benchmarks are 1.4 and 5.6
// times larger.
const (
	coreRatio = 3
	textRatio = 8
)

// Memory bounds what groups of a segment take in a view, in bytes. It is known
// before anything of the segment is read. TestMemoryIsBounded holds it against
// views.
func (s *Segment) Memory(schema *columnar.Schema, groups columnar.ColumnGroupSet) int64 {
	n := int64(0)
	for g := range all(groups) {
		n += schema.GroupMemory(g, s.Rows, s.unpacked(g))
	}
	return n
}

func (s *Segment) unpacked(g columnar.ColumnGroup) int {
	switch {
	case s.Unpacked[g] > 0:
		return s.Unpacked[g]
	case g == columnar.Core:
		return coreRatio * s.Groups[g]
	}
	return textRatio * s.Groups[g]
}

// Memory bounds what groups of a partition take in a view, in bytes.
func (p *Partition) Memory(schema *columnar.Schema, groups columnar.ColumnGroupSet) int64 {
	n := int64(0)
	for _, s := range p.Segments {
		n += s.Memory(schema, groups)
	}
	return n
}

// Stored is how many bytes the groups of a partition have in storage.
func (p *Partition) Stored(groups columnar.ColumnGroupSet) int64 {
	n := 0
	for _, s := range p.Segments {
		for g := range all(groups) {
			n += s.Groups[g]
		}
	}
	return int64(n)
}
