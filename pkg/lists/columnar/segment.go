package columnar

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"iter"
	"math/bits"
	"slices"
)

// Encoded is a segment at rest: documents of distinct keys, deleted ones among
// them, in the groups that doc.go specifies. Groups that the schema does not have
// are nil. The same documents make the same bytes, whatever their order, with the
// same release of zstd.
type Encoded struct {
	Groups [NumColumnGroups][]byte
	// Rows counts the documents, and Tombstones how many of them are deleted.
	Rows, Tombstones int
	// MaxVisible is the latest Visible of all documents; 0 when there is none.
	MaxVisible int64
}

// Segment is a decoded segment, for one goroutine at a time.
type Segment struct {
	schema       *Schema
	id           segmentID
	dictionaries []*Dictionary // by Col, nil unless a Keyword; not made to be looked up
	groups       []*RowGroup
	deleted      []*RowSet // by chunk; nil where no document is deleted
	rows         int
	tombstones   int
	decoded       ColumnGroupSet // decoded
	view         *View    // that owns the segment
}

// segmentID ties the groups of a segment together: it is made of all they hold.
type segmentID [16]byte

const segmentVersion = 1

// MaxRows is how many documents a segment has at most.
const MaxRows = 1 << 22

// EncodeSegment makes a segment of documents in any order. Of those with one key
// the newest counts, as View.Apply says. It panics when a document is of another
// schema, or when the bounds MaxRows or MaxGroup would be exceeded.
func EncodeSegment(s *Schema, docs []Document) Encoded {
	s.own(docs, "EncodeSegment")
	t := newTable(s)
	cells := make([]cell, len(s.columns)+1)
	var chunks []*RowGroup
	for i, u := range newest(docs) {
		if i%MaxRowGroup == 0 {
			chunks = append(chunks, NewRowGroup(s))
		}
		c := chunks[len(chunks)-1]
		if u.Deleted {
			c.AppendDeleted(u.key(), u.Revision, u.visible)
			continue
		}
		u.split(cells)
		c.Append(u.Document, u.visible, cells, t.dictionaries)
	}
	sorted, codes := joinDictionaries(s, [][]*Dictionary{t.dictionaries}, nil)
	w := newSegmentWriter(s, sorted)
	for _, c := range chunks {
		c.mapCodes(codes[0])
		w.add(c)
	}
	e, err := w.finish()
	if err != nil {
		panic(fmt.Sprintf("index: EncodeSegment: %v", err))
	}
	return e
}

// own panics when a document is of another schema.
func (s *Schema) own(docs []Document, what string) {
	for i := range docs {
		if docs[i].schema != s {
			panic(fmt.Sprintf("index: %s: document %x is not of schema %s", what, docs[i].ID, s.name))
		}
	}
}

// appendDeleted adds the row of a deleted document, which does not live.
func (c *RowGroup) AppendDeleted(k Key, revision, visible int64) {
	c.appendHead(k, revision, visible)
	c.markDead(c.Rows() - 1)
	for i := range c.Columns {
		c.Columns[i].Values.appendNull()
	}
	for g := range c.Text {
		c.Text[g].close()
	}
}

// mapCodes replaces the codes of a chunk that is not packed.
func (c *RowGroup) mapCodes(codes [][]int64) {
	for col, to := range codes {
		if to == nil {
			continue
		}
		raw := c.Columns[col].Values.Raw
		for row, code := range raw {
			raw[row] = to[code]
		}
	}
}

// segmentWriter makes a segment of chunks that are not packed. Their codes are of
// its dictionaries.
type segmentWriter struct {
	schema  *Schema
	frames  [NumColumnGroups][]byte // of the blocks
	lengths [2][]byte      // of the rows of text
	sizes   [NumColumnGroups]int
	sum     hash.Hash
	raw     []byte
	encoded Encoded
}

func newSegmentWriter(s *Schema, dictionaries []*Dictionary) *segmentWriter {
	w := &segmentWriter{schema: s, sum: sha256.New()}
	for _, d := range dictionaries {
		if d != nil {
			w.raw = appendDictionary(w.raw, d)
		}
	}
	w.frame(Core, w.raw)
	return w
}

func (w *segmentWriter) frame(g ColumnGroup, raw []byte) {
	w.sizes[g] += len(raw)
	w.sum.Write(raw)
	w.frames[g] = appendFrame(w.frames[g], raw)
}

func (w *segmentWriter) add(c *RowGroup) {
	w.raw = appendBlock(w.raw[:0], c)
	w.frame(Core, w.raw)
	dead := c.Deleted()
	for g, cols := range w.schema.groups {
		if len(cols) > 0 {
			w.lengths[g] = appendLengths(w.lengths[g], &c.Text[g], dead)
			w.frame(textGroup(g), c.Text[g].Data)
		}
	}
	if w.encoded.Rows == 0 {
		w.encoded.MaxVisible = c.Visible.Raw[0]
	}
	w.encoded.MaxVisible = max(w.encoded.MaxVisible, slices.Max(c.Visible.Raw))
	w.encoded.Rows += c.Rows()
	w.encoded.Tombstones += c.Rows() - c.liveCount
}

func (w *segmentWriter) finish() (Encoded, error) {
	for g := range w.lengths {
		w.sum.Write(w.lengths[g])
		w.sizes[textGroup(g)] += len(w.lengths[g])
	}
	if w.encoded.Rows > MaxRows || slices.Max(w.sizes[:]) > MaxGroup {
		return Encoded{}, fmt.Errorf("%d documents of %s with groups of %d bytes: %w", w.encoded.Rows, w.schema.name, w.sizes, ErrTooLarge)
	}
	id := segmentID(w.sum.Sum(nil)[:len(segmentID{})])
	core := w.schema.appendHead(nil, Core, id)
	core = binary.AppendUvarint(core, uint64(w.encoded.Rows))
	core = binary.AppendUvarint(core, uint64(w.encoded.Tombstones))
	w.encoded.Groups[Core] = sealGroup(append(core, w.frames[Core]...))
	for g, cols := range w.schema.groups {
		if len(cols) > 0 {
			text := w.schema.appendHead(nil, textGroup(g), id)
			text = appendFrame(text, w.lengths[g])
			w.encoded.Groups[textGroup(g)] = sealGroup(append(text, w.frames[textGroup(g)]...))
		}
	}
	return w.encoded, nil
}

func sealGroup(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

const segmentMagic = "cseg"

// appendHead writes what every group starts with.
func (s *Schema) appendHead(dst []byte, g ColumnGroup, id segmentID) []byte {
	dst = append(dst, segmentMagic...)
	dst = append(dst, segmentVersion, byte(g))
	dst = append(dst, id[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(s.name)))
	dst = append(dst, s.name...)
	sum := s.sum()
	return append(dst, sum[:]...)
}

// sum stands for the columns: their names, types and flags.
func (s *Schema) sum() [8]byte {
	var b []byte
	for _, c := range s.columns {
		b = binary.AppendUvarint(b, uint64(len(c.Name)))
		b = append(b, c.Name...)
		b = append(b, byte(c.Type))
		for _, flag := range []bool{c.Sort, c.Search, c.Match, c.Fold} {
			b = append(b, 0)
			if flag {
				b[len(b)-1] = 1
			}
		}
	}
	sum := sha256.Sum256(b)
	return [8]byte(sum[:])
}

// openGroup checks the checksum and the head of a group and returns a reader of
// what follows.
func (s *Schema) openGroup(g ColumnGroup, data []byte) (*reader, segmentID, error) {
	fail := func(what string, err error) (*reader, segmentID, error) {
		return nil, segmentID{}, fmt.Errorf("%s: %w", what, err)
	}
	if len(data) < len(segmentMagic)+1 || string(data[:len(segmentMagic)]) != segmentMagic {
		return fail("not a segment", ErrFormat)
	}
	if v := data[len(segmentMagic)]; v != segmentVersion {
		return fail(fmt.Sprintf("format %d, this program knows %d", v, segmentVersion), ErrVersion)
	}
	body := data[:max(len(data)-crc32.Size, 0)]
	if crc32.Checksum(body, castagnoli()) != binary.LittleEndian.Uint32(data[len(body):]) {
		return fail("checksum differs", ErrFormat)
	}
	r := &reader{data: body}
	r.take(uint64(len(segmentMagic) + 1))
	group := ColumnGroup(r.byte())
	var id segmentID
	copy(id[:], r.take(uint64(len(id))))
	name := r.take(r.uvarint())
	sum := r.take(8)
	switch {
	case r.bad:
		return fail("head", ErrFormat)
	case group != g:
		return fail(fmt.Sprintf("group %d", group), ErrFormat)
	case string(name) != s.name:
		return fail(fmt.Sprintf("schema %q", name), ErrVersion)
	case [8]byte(sum) != s.sum():
		return fail("other columns than the schema has now", ErrVersion)
	}
	return r, id, nil
}

// DecodeSegment reads a segment's Core. It keeps nothing of core. Errors are
// ErrFormat, or ErrVersion when the segment was written in another format or with
// other columns than the schema's, wrapped. What is read takes at most MaxGroup
// bytes and as much again for the columns that queries compare.
func DecodeSegment(s *Schema, core []byte) (*Segment, error) {
	r, id, err := s.openGroup(Core, core)
	if err != nil {
		return nil, fmt.Errorf("decode a segment of %s: %w", s.name, err)
	}
	g := &Segment{schema: s, id: id, decoded: SetOf(Core)}
	if !g.read(r) {
		return nil, fmt.Errorf("decode a segment of %s: %w", s.name, ErrFormat)
	}
	return g, nil
}

func (g *Segment) read(r *reader) bool {
	rows, tombstones := r.uvarint(), r.uvarint()
	if r.bad || rows > MaxRows {
		return false
	}
	g.rows, g.tombstones = int(rows), int(tombstones)
	room := MaxGroup
	raw := r.frame(nil, room)
	room -= len(raw)
	if r.bad || !g.readDictionaries(raw) {
		return false
	}
	b := newBlockReader(g.schema, g.dictionaries)
	found := 0
	for left := g.rows; left > 0; left -= MaxRowGroup {
		n := min(left, MaxRowGroup)
		b.raw = r.frame(b.raw, min(room, g.schema.maxBlock(n)))
		room -= len(b.raw)
		if r.bad {
			return false
		}
		c, ok := b.read(b.raw, n)
		if !ok {
			return false
		}
		dead := c.Deleted()
		found += orEmpty(dead).Count()
		g.groups = append(g.groups, c)
		g.deleted = append(g.deleted, dead)
	}
	return len(r.data) == 0 && found == g.tombstones && b.allUsed(g.dictionaries)
}

func newBlockReader(s *Schema, dictionaries []*Dictionary) *blockReader {
	b := &blockReader{schema: s, used: make([][]uint64, len(dictionaries)), spans: make([]int64, len(dictionaries))}
	for col, d := range dictionaries {
		if d != nil {
			b.spans[col] = int64(d.Span())
			b.used[col] = make([]uint64, (d.Span()+63)/64)
		}
	}
	return b
}

// allUsed says whether the codes that occur are all that the dictionaries have,
// and no others.
func (b *blockReader) allUsed(dictionaries []*Dictionary) bool {
	for col, d := range dictionaries {
		if d == nil {
			continue
		}
		used := b.used[col]
		for s, members := range d.Sets {
			code := 2*s + 1
			if used[code>>6]>>(code&63)&1 == 0 {
				return false
			}
			used[code>>6] &^= 1 << (code & 63)
			for _, m := range members {
				used[(2*m+2)>>6] |= 1 << ((2*m + 2) & 63)
			}
		}
		used[0] &^= 1
		if bitsSet(used) != len(d.Ends) {
			return false
		}
		for v := range d.Ends {
			if code := 2*v + 2; used[code>>6]>>(code&63)&1 == 0 {
				return false
			}
		}
	}
	return true
}

// Decode reads a group of text of the same segment; a group that was read before
// is left as it is. It keeps nothing of data. Errors are as of DecodeSegment; the
// segment is as it was then.
func (g *Segment) Decode(group ColumnGroup, data []byte) error {
	if g.view != nil {
		panic("index: Decode: the segment is in a view; see Fill")
	}
	if g.decoded.Has(group) {
		return nil
	}
	blocks, err := g.decodeText(group, data)
	if err != nil {
		return err
	}
	for i := range blocks {
		blocks[i].give(g.groups[i], int(group-SearchText))
	}
	g.decoded |= SetOf(group)
	return nil
}

func (g *Segment) decodeText(group ColumnGroup, data []byte) ([]textBlock, error) {
	if group == Core || !g.schema.ColumnGroups().Has(group) {
		panic(fmt.Sprintf("index: schema %s has no text in group %d", g.schema.name, group))
	}
	blocks, err := g.readText(group, data)
	if err != nil {
		return nil, fmt.Errorf("decode the %s of a segment of %s: %w", group, g.schema.name, err)
	}
	return blocks, nil
}

func (g *Segment) readText(group ColumnGroup, data []byte) ([]textBlock, error) {
	r, id, err := g.schema.openGroup(group, data)
	if err != nil {
		return nil, err
	}
	if id != g.id {
		return nil, fmt.Errorf("of another segment: %w", ErrFormat)
	}
	b := newTextReader(g.schema, int(group-SearchText))
	lengths := &reader{data: r.frame(nil, b.room)}
	b.room -= len(lengths.data)
	blocks := make([]textBlock, 0, len(g.deleted))
	for i := range g.deleted {
		t := TextRows{Starts: b.starts(lengths, g.rowsOf(i), g.deleted[i])}
		if lengths.bad || r.bad {
			break
		}
		size := int(t.Starts[len(t.Starts)-1])
		t.Data = r.frame(nil, size)
		if r.bad || len(t.Data) != size {
			break
		}
		block, ok := b.scan(t, g.deleted[i])
		if !ok {
			break
		}
		blocks = append(blocks, block)
	}
	if r.bad || lengths.bad || len(blocks) != len(g.deleted) || len(r.data) > 0 || len(lengths.data) > 0 {
		return nil, fmt.Errorf("block %d of %d: %w", len(blocks), len(g.deleted), ErrFormat)
	}
	return blocks, nil
}

// rowsOf returns how many rows the i-th block has.
func (g *Segment) rowsOf(i int) int { return min(g.rows-i*MaxRowGroup, MaxRowGroup) }

// Rows counts the documents, deleted ones among them.
func (g *Segment) Rows() int { return g.rows }

// Tombstones counts the deleted documents.
func (g *Segment) Tombstones() int { return g.tombstones }

// Documents returns the documents in the order of their keys, deleted ones among
// them. It panics unless all groups are decoded, and once a view owns the segment.
func (g *Segment) Documents() iter.Seq[Document] {
	g.want("Documents")
	return func(yield func(Document) bool) {
		for _, c := range g.groups {
			for row := range c.Rows() {
				if !yield(c.Document(row, g.dictionaries)) {
					return
				}
			}
		}
	}
}

// want panics unless the segment is complete and not in a view.
func (g *Segment) want(what string) {
	if g.view != nil {
		panic(fmt.Sprintf("index: %s: the segment is in a view", what))
	}
	if missing := g.schema.ColumnGroups() &^ g.decoded; missing != 0 {
		panic(fmt.Sprintf("index: %s: the %s of the segment is not decoded", what, ColumnGroup(bits.TrailingZeros8(uint8(missing)))))
	}
}

// document makes the document of a row again.
func (c *RowGroup) Document(row int, dictionaries []*Dictionary) Document {
	k := c.Key(row)
	d := Document{
		ID: k.ID, Sub: k.Sub, Revision: c.Revision.At(row), Visible: c.Visible.At(row),
		Deleted: !c.Live.Has(row), schema: c.schema,
	}
	if d.Deleted {
		return d
	}
	values := make([]byte, 0, 128)
	for i, declared := range c.schema.columns {
		col := Col(i + 1)
		column := &c.Columns[col]
		null := column.Null != nil && column.Null.Has(row)
		switch declared.Type {
		case Keyword:
			values = appendKeyword(values, col, dictionaries[col], column.Values.At(row))
		case Bool:
			if !null {
				kind := kindFalse
				if column.True != nil && column.True.Has(row) {
					kind = kindTrue
				}
				values = append(values, byte(col), kind)
			}
		case Number, Time:
			if !null {
				values = append(values, byte(col), kindNumber)
				values = binary.AppendVarint(values, column.Values.At(row))
			}
		case Text:
			p := c.schema.place[col]
			values = appendText(values, col, c.Text[p.group].Row(row), p.rank)
		}
	}
	if len(values) > 0 {
		d.values = slices.Clip(values)
	}
	return d
}
