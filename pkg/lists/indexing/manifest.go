package indexing

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
)

// manifest says what a list consists of: the segments of its parts, which hold
// every change of the tail up to covered.
type manifest struct {
	covered uint64
	rebuild value.ID // the last rebuild that it came from
	parts   []part   // by number
	free    []slot   // chunks that were replaced; later ones take their place
}

// part is one part of a list.
type part struct {
	number   int32
	segments []segment
	// sealed says that summary is exact for the segments as they are. It is
	// counted from them, never from changes, which may come twice.
	sealed  bool
	summary columnar.Summary
	// counted and live are how many rows the segments had when they were last
	// counted or all merged, and how many of those were not dead.
	counted, live int
}

// segment is where the bytes of a segment lie: its groups, one behind the
// other, cut into chunks.
type segment struct {
	rows, tombstones int
	groups           [columnar.Groups]int // bytes
	chunks           []chunk

	// encoded is a segment that is not stored yet.
	encoded *columnar.Encoded
}

// chunk is a slot with what it holds: the mark tells whether it still does.
type chunk struct {
	slot, mark uint64
	size       int
}

// slot is a chunk that no manifest names any more since a moment.
type slot struct {
	chunk
	since value.Time
}

func (s *segment) bytes() int {
	n := 0
	for _, size := range s.groups {
		n += size
	}
	return n
}

func (p *part) rows() int {
	n := 0
	for i := range p.segments {
		n += p.segments[i].rows
	}
	return n
}

func (p *part) bytes() int {
	n := 0
	for i := range p.segments {
		n += p.segments[i].bytes()
	}
	return n
}

// part returns the part of the number; create makes it when there is none.
func (m *manifest) part(number int32, create bool) *part {
	i, found := slices.BinarySearchFunc(m.parts, number, func(p part, n int32) int { return cmp.Compare(p.number, n) })
	if !found {
		if !create {
			return nil
		}
		m.parts = slices.Insert(m.parts, i, part{number: number})
	}
	return &m.parts[i]
}

// manifestVersion is raised with every change of the form below.
//
// A manifest is, in uvarints where nothing else is said (varint: zigzag):
//
//	version (1 byte, 1), organization (16 bytes), length and bytes of the
//	list's name, covered, rebuild (16 bytes),
//	number of parts; of each: number (varint, rising), sealed (0 or 1), rows
//	counted, rows live, the summary: count, and if that is not 0 min and max of Visible
//	(varints), number of Time columns, of each nulls and, if there are others,
//	min and max (varints); number of segments; of each: rows, tombstones,
//	bytes of each group, number of chunks, of each slot, mark (8 bytes) and size,
//	number of free slots; of each slot, mark (8 bytes), size, since (varint),
//	CRC-32C of all bytes before it (4 bytes, little endian)
const manifestVersion = 1

// errManifest says that a manifest is not in this form, or another list's.
var errManifest = errors.New("not a manifest of this list")

var castagnoli = crc32.MakeTable(crc32.Castagnoli) //nolint:gochecknoglobals // a constant table

func (m *manifest) encode(org value.ID, list string) []byte {
	b := []byte{manifestVersion}
	b = append(b, org[:]...)
	b = binary.AppendUvarint(b, uint64(len(list)))
	b = append(b, list...)
	b = binary.AppendUvarint(b, m.covered)
	b = append(b, m.rebuild[:]...)
	b = appendCount(b, len(m.parts))
	for i := range m.parts {
		b = m.parts[i].append(b)
	}
	b = appendCount(b, len(m.free))
	for _, s := range m.free {
		b = binary.AppendVarint(s.append(b), int64(s.since))
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func appendCount(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) } //nolint:gosec // never negative

func (p *part) append(b []byte) []byte {
	sealed := byte(0)
	if p.sealed {
		sealed = 1
	}
	b = append(binary.AppendVarint(b, int64(p.number)), sealed)
	b = appendCount(b, p.counted)
	b = appendCount(b, p.live)
	b = appendSummary(b, &p.summary)
	b = appendCount(b, len(p.segments))
	for i := range p.segments {
		b = p.segments[i].append(b)
	}
	return b
}

func appendSummary(b []byte, s *columnar.Summary) []byte {
	b = appendCount(b, s.Count)
	if s.Count > 0 {
		b = appendRange(b, s.Visible)
	}
	b = appendCount(b, len(s.Times))
	for _, t := range s.Times {
		b = appendCount(b, t.Nulls)
		if t.Nulls < s.Count {
			b = appendRange(b, t.Range)
		}
	}
	return b
}

func appendRange(b []byte, r columnar.Range) []byte {
	return binary.AppendVarint(binary.AppendVarint(b, r.Min), r.Max)
}

func (s *segment) append(b []byte) []byte {
	b = appendCount(b, s.rows)
	b = appendCount(b, s.tombstones)
	for _, size := range s.groups {
		b = appendCount(b, size)
	}
	b = appendCount(b, len(s.chunks))
	for _, c := range s.chunks {
		b = c.append(b)
	}
	return b
}

func (c *chunk) append(b []byte) []byte {
	b = binary.AppendUvarint(b, c.slot)
	b = binary.LittleEndian.AppendUint64(b, c.mark)
	return appendCount(b, c.size)
}

// decodeManifest reads the manifest of a list with so many Time columns.
func decodeManifest(org value.ID, list *List, data []byte) (*manifest, error) {
	if len(data) < 1+crc32.Size {
		return nil, fmt.Errorf("%d bytes: %w", len(data), errManifest)
	}
	if data[0] != manifestVersion {
		return nil, fmt.Errorf("version %d, this program knows %d: %w", data[0], manifestVersion, errManifest)
	}
	body, sum := data[:len(data)-crc32.Size], data[len(data)-crc32.Size:]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(sum) {
		return nil, fmt.Errorf("checksum differs: %w", errManifest)
	}
	r := reader{data: body[1:]}
	if r.id() != org || string(r.take(r.count())) != list.Name {
		return nil, fmt.Errorf("it is another list's: %w", errManifest)
	}
	m := &manifest{covered: r.uvarint(), rebuild: r.id()}
	for range r.count() {
		m.parts = append(m.parts, r.part())
		if n := len(m.parts); n > 1 && m.parts[n-2].number >= m.parts[n-1].number {
			r.bad = true
		}
		if r.bad {
			break
		}
	}
	for range r.count() {
		m.free = append(m.free, slot{r.chunk(), value.Time(r.varint())})
		if r.bad {
			break
		}
	}
	if r.bad || len(r.data) > 0 {
		return nil, fmt.Errorf("content: %w", errManifest)
	}
	return m, m.checkTimes(list)
}

// checkTimes refuses summaries of a schema with fewer or more Time columns.
func (m *manifest) checkTimes(list *List) error {
	times := 0
	for _, c := range list.Schema.Columns() {
		if c.Type == columnar.Time {
			times++
		}
	}
	for i := range m.parts {
		if p := &m.parts[i]; p.sealed && len(p.summary.Times) != times {
			return fmt.Errorf("summary of %d times, the list has %d: %w", len(p.summary.Times), times, errManifest)
		}
	}
	return nil
}

// reader takes values off data. Once something does not fit, bad is set and
// what is read means nothing; counts are 0 then, so that loops end.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) fail() { r.bad, r.data = true, nil }

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.data = r.data[n:]
	return v
}

// count reads a number that fits an int of 32 bits.
func (r *reader) count() int {
	v := r.uvarint()
	if v > 1<<31-1 {
		r.fail()
		return 0
	}
	return int(v)
}

func (r *reader) take(n int) []byte {
	if n > len(r.data) {
		r.fail()
		return nil
	}
	v := r.data[:n]
	r.data = r.data[n:]
	return v
}

func (r *reader) id() (id value.ID) {
	copy(id[:], r.take(len(id)))
	return id
}

func (r *reader) span() columnar.Range { return columnar.Range{Min: r.varint(), Max: r.varint()} }

func (r *reader) part() part {
	p := part{number: int32(r.varint())} //nolint:gosec // a checksum says that we wrote it
	flag := r.take(1)
	p.sealed = len(flag) == 1 && flag[0] == 1
	p.counted, p.live = r.count(), r.count()
	p.summary.Count = r.count()
	if p.summary.Count > 0 {
		p.summary.Visible = r.span()
	}
	for range r.count() {
		t := columnar.TimeRange{Nulls: r.count()}
		if t.Nulls < p.summary.Count {
			t.Range = r.span()
		}
		p.summary.Times = append(p.summary.Times, t)
		if r.bad {
			break
		}
	}
	for range r.count() {
		p.segments = append(p.segments, r.segment())
		if r.bad {
			break
		}
	}
	return p
}

func (r *reader) segment() segment {
	s := segment{rows: r.count(), tombstones: r.count()}
	for g := range s.groups {
		s.groups[g] = r.count()
	}
	size := 0
	for range r.count() {
		c := r.chunk()
		size += c.size
		s.chunks = append(s.chunks, c)
		if r.bad {
			break
		}
	}
	if size != s.bytes() {
		r.fail()
	}
	return s
}

func (r *reader) chunk() chunk {
	c := chunk{slot: r.uvarint()}
	if mark := r.take(8); mark != nil {
		c.mark = binary.LittleEndian.Uint64(mark)
	}
	c.size = r.count()
	return c
}
