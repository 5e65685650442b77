package index

import "github.com/commerce-integration/service/pkg/lists/columnar"

// Memory bounds what groups of a segment take in a view, in bytes. It is known
// before anything of the segment is read. TestMemoryIsBounded holds it against
// views.
func (s *Segment) Memory(schema *columnar.Schema, groups columnar.ColumnGroupSet) int64 {
	n := int64(0)
	for g := range all(groups) {
		n += schema.GroupMemory(g, s.Rows, s.Unpacked[g])
	}
	return n
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
