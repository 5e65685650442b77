package index

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

// Manifest names the segments of a list's partitions. Together they hold every
// change of the tail up to entry Covered.
type Manifest struct {
	Covered    uint64
	CoveredAt  value.Time   `json:"-"` // of entry Covered; stored outside the body
	Layout     Layout       `json:"-"` // of its key
	RebuildID  value.ID     // the last rebuild that the segments come from
	Fields     int          // the greatest number of an own field that all documents have
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
	Groups           [segment.NumGroups]int // bytes
	Unpacked         [segment.NumGroups]int // bytes before compression
	Chunks           []Chunk

	// Encoded is the segment itself while it is not stored yet.
	Encoded *segment.Encoded `json:"-"`
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

// Bytes is the size of a segment, or of its core.
func (s *Segment) Bytes(text bool) int { return size(s.Groups, text) }

// Memory bounds what a segment, or its core, takes in a view, in bytes. It is known before
// anything of the segment is read. TestMemoryIsBounded holds it against views.
func (s *Segment) Memory(schema *columnar.Schema, text bool) int64 {
	return schema.Memory(s.Rows, size(s.Unpacked, text))
}

func size(groups [segment.NumGroups]int, text bool) int {
	if text {
		return groups[segment.Core] + groups[segment.Text]
	}
	return groups[segment.Core]
}

// Rows is the number of rows in all segments.
func (p *Partition) Rows() int {
	n := 0
	for _, s := range p.Segments {
		n += s.Rows
	}
	return n
}

// Bytes is the size of all segments, or of their cores.
func (p *Partition) Bytes(text bool) int {
	n := 0
	for _, s := range p.Segments {
		n += s.Bytes(text)
	}
	return n
}

// Memory bounds what all segments, or their cores, take in a view, in bytes.
func (p *Partition) Memory(schema *columnar.Schema, text bool) int64 {
	n := int64(0)
	for _, s := range p.Segments {
		n += s.Memory(schema, text)
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

// errManifest says that bytes are not a manifest of the list.
var errManifest = errors.New("not a manifest of this list")

// EncodeManifest returns the stored form of the list's manifest.
func (k Key) EncodeManifest(m *Manifest) []byte { return k.encode(liveManifest, k.Layout(), m) }

// DecodeManifest reads the stored form of the list's manifest, in the layout of
// the list.
func (k Key) DecodeManifest(body []byte) (*Manifest, error) {
	m, err := k.decodeManifest(k.Layout(), body)
	if err != nil {
		return nil, err
	}
	return m, m.check(k.List)
}

func (k Key) decodeManifest(l Layout, body []byte) (*Manifest, error) {
	m := &Manifest{}
	return m, k.decode(liveManifest, l, body, m)
}

// encode returns v as compressed JSON, sealed as a manifest of the list, or a state
// of a rebuild, in a layout.
func (k Key) encode(kind string, l Layout, v any) []byte {
	return seal(k.manifestContext(kind, l), packer().EncodeAll(must(json.Marshal(v)), nil))
}

// decode reads into v what encode returned.
func (k Key) decode(kind string, l Layout, sealed []byte, v any) error {
	body, ok := unseal(k.manifestContext(kind, l), sealed)
	if !ok {
		return fmt.Errorf("checksum of %d bytes: %w", len(sealed), errManifest)
	}
	text, err := unpacker().DecodeAll(body, nil)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errManifest, err)
	}
	return nil
}

func (k Key) manifestContext(kind string, l Layout) []byte {
	return slices.Concat(k.Org[:], []byte(l.manifest(kind)), []byte(k.List.Name))
}

// check refuses partitions out of order, summaries of a schema with fewer or more
// Time columns, and segments whose chunks do not have their size.
func (m *Manifest) check(list *List) error {
	times := 0
	for _, c := range list.Schema.Columns() {
		if c.Type == columnar.Time {
			times++
		}
	}
	for i, p := range m.Partitions {
		if i == 0 && p.From != [16]byte{} || i > 0 && !p.follows(m.Partitions[i-1]) {
			return fmt.Errorf("partitions out of order: %w", errManifest)
		}
		if p.Sealed && len(p.Summary.Times) != times {
			return fmt.Errorf("summary of %d times, the list has %d: %w", len(p.Summary.Times), times, errManifest)
		}
		for _, s := range p.Segments {
			size := 0
			for _, c := range s.Chunks {
				size += c.Size
			}
			if size != s.Bytes(true) {
				return fmt.Errorf("%d bytes of chunks, the segment has %d: %w", size, s.Bytes(true), errManifest)
			}
		}
	}
	return nil
}

// follows reports whether a partition may come after another one: as a later part of
// its number, or as the first part of a later one.
func (p *Partition) follows(before *Partition) bool {
	if p.Number == before.Number {
		return bytes.Compare(before.From[:], p.From[:]) < 0
	}
	return p.Number > before.Number && p.From == [16]byte{}
}
