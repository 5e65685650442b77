package index

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

// Manifest names the segments of a list's partitions. Together they hold every
// change of the tail up to entry Covered.
type Manifest struct {
	Covered    uint64
	CoveredAt  value.Time   // of entry Covered; stored beside the body, as are the next two
	Layout     Layout       // of its key
	Shared     bool         // as of StoredManifest
	RebuildID  value.ID     // the last rebuild that the segments come from
	Partitions []*Partition // by number and From
	Free       []FreeChunk
}

// Partition is one partition of a list, or a part of one that has been divided.
type Partition struct {
	Number int32
	// From is the least ID that the partition may have. The first one of a number
	// has zero; each reaches up to the next of the same number.
	From     [16]byte
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

// Find returns the partition that a document belongs to, or where one of its number
// would be.
func (m *Manifest) Find(number int32, id [16]byte) (i int, found bool) {
	i, found = slices.BinarySearchFunc(m.Partitions, number, func(p *Partition, n int32) int {
		return cmp.Or(cmp.Compare(p.Number, n), bytes.Compare(p.From[:], id[:]))
	})
	if !found && i > 0 && m.Partitions[i-1].Number == number {
		return i - 1, true
	}
	return i, found
}

// Add adds documents of a partition number to partitions, as one segment for each
// that has some of them, which is not sealed then. It sorts the documents by ID.
// encode makes the segments, and is told where they go.
func (m *Manifest) Add(number int32, documents []columnar.Document, encode func(*Partition, []columnar.Document) *Segment) {
	for p, documents := range m.Divided(number, documents) {
		p.Segments, p.Sealed = append(p.Segments, encode(p, documents)), false
	}
}

// Divided iterates over the partitions that have some of the documents of a
// partition number, and those documents. It sorts them by ID, and adds a partition
// where there is none of the number.
func (m *Manifest) Divided(number int32, documents []columnar.Document) iter.Seq2[*Partition, []columnar.Document] {
	return func(yield func(*Partition, []columnar.Document) bool) {
		i, found := m.Find(number, [16]byte{})
		if !found {
			m.Partitions = slices.Insert(m.Partitions, i, &Partition{Number: number})
		}
		slices.SortStableFunc(documents, func(a, b columnar.Document) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		for len(documents) > 0 {
			i, _ := m.Find(number, documents[0].ID)
			r, n := m.Range(i), 1
			for n < len(documents) && r.Has(number, documents[n].ID) {
				n++
			}
			if !yield(m.Partitions[i], documents[:n]) {
				return
			}
			documents = documents[n:]
		}
	}
}

// Divide puts parts in the place of a partition: the first begins where it does.
func (m *Manifest) Divide(p *Partition, parts ...*Partition) {
	i, _ := m.Find(p.Number, p.From)
	m.Partitions = slices.Replace(m.Partitions, i, i+1, parts...)
}

// Range is the IDs of a partition number from From up to To, exclusive; a To of zero
// bounds nothing.
type Range struct {
	Number   int32
	From, To [16]byte
}

// Range is which documents the i-th partition may have.
func (m *Manifest) Range(i int) Range {
	p := m.Partitions[i]
	r := Range{Number: p.Number, From: p.From}
	if i+1 < len(m.Partitions) && m.Partitions[i+1].Number == p.Number {
		r.To = m.Partitions[i+1].From
	}
	return r
}

// Has reports whether a document lies in the range.
func (r Range) Has(number int32, id [16]byte) bool {
	return number == r.Number && bytes.Compare(id[:], r.From[:]) >= 0 && (r.To == [16]byte{} || bytes.Compare(id[:], r.To[:]) < 0)
}

// Overlaps reports whether ranges share documents.
func (r Range) Overlaps(other Range) bool {
	return r.Has(other.Number, other.From) || other.Has(r.Number, r.From)
}

// Covers reports whether all documents of another range lie in the range.
func (r Range) Covers(other Range) bool {
	return r.Has(other.Number, other.From) &&
		(r.To == [16]byte{} || other.To != [16]byte{} && bytes.Compare(other.To[:], r.To[:]) <= 0)
}

// errManifest says that bytes are no manifest of the list.
var errManifest = errors.New("not a manifest of this list")

// Formats of manifests whose key has no layout tell of no divided partitions, and
// are not packed, where they are undivided; the first one also lacks the counts of
// values and the sizes before compression, and is no longer written.
const (
	manifestUndivided     = 2
	manifestWithoutCounts = 1
)

// EncodeManifest returns the stored form of the list's manifest.
func (k Key) EncodeManifest(m *Manifest) []byte {
	c, l := codec{}, k.Layout()
	divided := slices.ContainsFunc(m.Partitions, func(p *Partition) bool { return p.From != [16]byte{} })
	if l.Format == legacyFormat && !divided {
		l.Format = manifestUndivided
	}
	c.fixed([]byte{byte(l.Format)}) //nolint:gosec // a small number
	if l.Format > legacyFormat {
		c.count(&l.Columns)
	}
	c.fixed(k.Org[:])
	c.text(&k.List.Name)
	if l.Format == manifestUndivided {
		c.manifest(m, l.Format)
		return seal(nil, c.Data)
	}
	content := codec{}
	content.manifest(m, l.Format)
	return seal(nil, append(c.Data, pack(content.Data)...))
}

// DecodeManifest reads the stored form of the list's manifest, in the layout of
// the list.
func (k Key) DecodeManifest(data []byte) (*Manifest, error) {
	body, ok := unseal(nil, data)
	if !ok || len(body) == 0 {
		return nil, fmt.Errorf("checksum of %d bytes: %w", len(data), errManifest)
	}
	l, format := k.Layout(), int(body[0])
	c, org, name, columns := reading(body[1:]), value.ID{}, "", l.Columns
	switch {
	case format > l.Format:
		return nil, fmt.Errorf("format %d, not %d: %w", format, l.Format, columnar.ErrNewer)
	case format != l.Format && !(l.Format == legacyFormat && format >= manifestWithoutCounts):
		return nil, fmt.Errorf("format %d, not %d: %w", format, l.Format, errManifest)
	case format > legacyFormat:
		c.count(&columns)
	}
	c.fixed(org[:])
	c.text(&name)
	if org != k.Org || name != k.List.Name || columns != l.Columns {
		return nil, fmt.Errorf("it belongs to another list: %w", errManifest)
	}
	if format > manifestUndivided {
		kind, size := []byte{0}, 0
		c.fixed(kind)
		c.count(&size)
		if c.Fail(kind[0] > entryPacked || size > maxUnpacked); !c.Bad {
			c.unpack(kind[0], size)
		}
	}
	m := &Manifest{}
	if c.manifest(m, format); c.Bad || len(c.Data) > 0 {
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
		least := [16]byte{}
		order := -1
		if i > 0 {
			before := m.Partitions[i-1]
			if order = cmp.Compare(before.Number, p.Number); order == 0 {
				order, least = bytes.Compare(before.From[:], p.From[:]), p.From
			}
		}
		if order >= 0 || p.From != least {
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

func (c *codec) manifest(m *Manifest, format int) {
	c.uvarint(&m.Covered)
	c.fixed(m.RebuildID[:])
	elements(c, &m.Partitions, func(p **Partition) { c.partition(made(p), format) })
	elements(c, &m.Free, func(f *FreeChunk) {
		c.chunk(&f.Chunk)
		c.varint((*int64)(&f.Since))
	})
}

func (c *codec) partition(p *Partition, format int) {
	number := int64(p.Number)
	c.varint(&number)
	c.flag(&p.Sealed)
	p.Number = int32(number) //nolint:gosec // a checksum says that we wrote it
	if format > manifestUndivided {
		c.fixed(p.From[:])
	}
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
	if format > manifestWithoutCounts {
		elements(c, &s.Keywords, func(k *columnar.ValueCounts) { c.counts(s, k) })
	}
	elements(c, &p.Segments, func(s **Segment) { c.segment(made(s), format) })
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

func (c *codec) segment(s *Segment, format int) {
	c.count(&s.Rows)
	c.count(&s.Tombstones)
	for g := range s.Groups {
		c.count(&s.Groups[g])
	}
	for g := range s.Unpacked {
		if format > manifestWithoutCounts {
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
