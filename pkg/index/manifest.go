package index

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
	"github.com/commerce-integration/service/pkg/value"
)

// Manifest names the segments of a list's partitions. Together they hold every
// change of the tail up to entry Covered.
type Manifest struct {
	Covered    uint64
	CoveredAt  value.Time   // of entry Covered; stored beside the body
	RebuildID  value.ID     // the last rebuild that the segments come from
	Partitions []*Partition // by number
	Free       []FreeChunk
}

// Partition is one partition of a list.
type Partition struct {
	Number   int32
	Segments []*Segment
	// Sealed says that Summary is exact for the segments as they are. It is
	// counted from them, never from changes, which may come twice.
	Sealed  bool
	Summary columnar.Summary
	// Counted is how many rows the segments had when they were last counted or
	// all merged, and Live how many of those were live.
	Counted, Live int
}

// Segment is where the bytes of a segment are: its column groups, one after
// the other, cut into chunks.
type Segment struct {
	Rows, Tombstones int
	Groups           [columnar.NumColumnGroups]int // bytes
	Unpacked         [columnar.NumColumnGroups]int // bytes before compression; 0 when not known
	Chunks           []Chunk

	// Encoded is the segment itself while it is not stored yet.
	Encoded *segment.Encoded
}

// Chunk names a chunk and the content that it must have.
type Chunk struct {
	Number, ContentID uint64
	Size              int
}

// FreeChunk is a chunk that no manifest has named since then. A later chunk may
// overwrite it.
type FreeChunk struct {
	Chunk
	Since value.Time
}

// Bytes is the size of a segment.
func (s *Segment) Bytes() int {
	n := 0
	for _, size := range s.Groups {
		n += size
	}
	return n
}

// Rows is the number of rows in all segments.
func (p *Partition) Rows() int {
	n := 0
	for _, s := range p.Segments {
		n += s.Rows
	}
	return n
}

// Bytes is the size of all segments.
func (p *Partition) Bytes() int {
	n := 0
	for _, s := range p.Segments {
		n += s.Bytes()
	}
	return n
}

func (m *Manifest) find(number int32) (i int, found bool) {
	return slices.BinarySearchFunc(m.Partitions, number, func(p *Partition, n int32) int { return cmp.Compare(p.Number, n) })
}

// Partition returns the partition with the number, nil when there is none.
func (m *Manifest) Partition(number int32) *Partition {
	if i, found := m.find(number); found {
		return m.Partitions[i]
	}
	return nil
}

// Add adds a segment to a partition, which is not sealed then.
func (m *Manifest) Add(number int32, s *Segment) {
	i, found := m.find(number)
	if !found {
		m.Partitions = slices.Insert(m.Partitions, i, &Partition{Number: number})
	}
	p := m.Partitions[i]
	p.Segments, p.Sealed = append(p.Segments, s), false
}

// errManifest says that bytes are no manifest of the list.
var errManifest = errors.New("not a manifest of this list")

// manifestVersion rises with every change of the format, which the package's
// documentation describes. The version before lacks the counts of values and
// the sizes before compression; it is read, and no longer written.
const (
	manifestVersion       = 2
	manifestWithoutCounts = 1
)

// EncodeManifest returns the stored form of the list's manifest.
func (k Key) EncodeManifest(m *Manifest) []byte {
	c := codec{}
	c.fixed([]byte{manifestVersion})
	c.fixed(k.Org[:])
	c.text(&k.List.Name)
	c.manifest(m, manifestVersion)
	return seal(nil, c.Data)
}

// DecodeManifest reads the stored form of the list's manifest.
func (k Key) DecodeManifest(data []byte) (*Manifest, error) {
	body, ok := unseal(nil, data)
	if !ok || len(body) == 0 {
		return nil, fmt.Errorf("checksum of %d bytes: %w", len(data), errManifest)
	}
	if v := body[0]; v != manifestVersion && v != manifestWithoutCounts {
		return nil, fmt.Errorf("version %d, this program knows %d and %d: %w", v, manifestWithoutCounts, manifestVersion, columnar.OtherFormat(int(v), manifestVersion))
	}
	c, org, name := reading(body[1:]), value.ID{}, ""
	c.fixed(org[:])
	c.text(&name)
	if org != k.Org || name != k.List.Name {
		return nil, fmt.Errorf("it belongs to another list: %w", errManifest)
	}
	m := &Manifest{}
	if c.manifest(m, body[0]); c.Bad || len(c.Data) > 0 {
		return nil, fmt.Errorf("content: %w", errManifest)
	}
	return m, m.check(k.List)
}

// check refuses partitions out of order, and summaries of a schema with fewer
// or more Time or Keyword columns.
func (m *Manifest) check(list *List) error {
	times, keywords := 0, 0
	for _, c := range list.Schema.Columns() {
		switch c.Type {
		case columnar.Time:
			times++
		case columnar.Keyword:
			keywords++
		}
	}
	for i, p := range m.Partitions {
		if i > 0 && m.Partitions[i-1].Number >= p.Number {
			return fmt.Errorf("partitions out of order: %w", errManifest)
		}
		if p.Sealed && len(p.Summary.Times) != times {
			return fmt.Errorf("summary of %d times, the list has %d: %w", len(p.Summary.Times), times, errors.Join(errManifest, columnar.ErrVersion))
		}
		if n := len(p.Summary.Keywords); p.Sealed && n > 0 && n != keywords {
			return fmt.Errorf("counts of %d columns, the list has %d: %w", n, keywords, errors.Join(errManifest, columnar.ErrVersion))
		}
	}
	return nil
}

func (c *codec) manifest(m *Manifest, version byte) {
	c.uvarint(&m.Covered)
	c.fixed(m.RebuildID[:])
	elements(c, &m.Partitions, func(p **Partition) { c.partition(made(p), version) })
	elements(c, &m.Free, func(f *FreeChunk) {
		c.chunk(&f.Chunk)
		c.varint((*int64)(&f.Since))
	})
}

func (c *codec) partition(p *Partition, version byte) {
	number := int64(p.Number)
	c.varint(&number)
	c.flag(&p.Sealed)
	p.Number = int32(number) //nolint:gosec // a checksum says that we wrote it
	c.count(&p.Counted)
	c.count(&p.Live)
	s := &p.Summary
	if c.count(&s.Count); s.Count > 0 {
		c.span(&s.Visible)
	}
	elements(c, &s.Times, func(t *columnar.TimeRange) {
		if c.count(&t.Nulls); t.Nulls < s.Count {
			c.span(&t.Range)
		}
	})
	if version > manifestWithoutCounts {
		elements(c, &s.Keywords, func(k *columnar.ValueCounts) { c.counts(s, k) })
	}
	elements(c, &p.Segments, func(s **Segment) { c.segment(made(s), version) })
}

// counts are the counts of a Keyword's values. What is null is told of a Time
// column only where some documents of the summary are, and others are not.
func (c *codec) counts(s *columnar.Summary, k *columnar.ValueCounts) {
	c.flag(&k.Counted)
	if !k.Counted {
		return
	}
	elements(c, &k.Values, func(v *columnar.ValueCount) {
		c.text(&v.Value)
		c.count(&v.Count)
		if c.reading {
			v.Nulls = make([]int, len(s.Times))
		}
		for i, t := range s.Times {
			switch t.Nulls {
			case 0:
			case s.Count:
				v.Nulls[i] = v.Count
			default:
				c.count(&v.Nulls[i])
			}
		}
	})
}

func (c *codec) segment(s *Segment, version byte) {
	c.count(&s.Rows)
	c.count(&s.Tombstones)
	for g := range s.Groups {
		c.count(&s.Groups[g])
	}
	for g := range s.Unpacked {
		if version > manifestWithoutCounts {
			c.count(&s.Unpacked[g])
		}
	}
	size := 0
	elements(c, &s.Chunks, func(chunk *Chunk) {
		c.chunk(chunk)
		size += chunk.Size
	})
	c.Fail(c.reading && size != s.Bytes())
}

func (c *codec) chunk(chunk *Chunk) {
	var content [8]byte
	binary.LittleEndian.PutUint64(content[:], chunk.ContentID)
	c.uvarint(&chunk.Number)
	c.fixed(content[:])
	chunk.ContentID = binary.LittleEndian.Uint64(content[:])
	c.count(&chunk.Size)
}
