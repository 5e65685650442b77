package segment

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/commerce-integration/service/pkg/base/strictbinary"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// MaxRows is how many documents a segment has at most.
const MaxRows = 1 << 22

// ErrTooLarge says that documents do not fit into one segment: they are more than
// MaxRows, or a group of them would exceed MaxGroup.
var ErrTooLarge = errors.New("too large for a segment of the index")

// Encoded is the bytes of a segment: documents of distinct keys, deleted ones among
// them. Groups that the schema does not have are nil. The same documents make the
// same bytes, whatever their order, with the same release of zstd.
type Encoded struct {
	Groups [columnar.NumColumnGroups][]byte
	// Rows counts the documents, and Tombstones how many of them are deleted.
	Rows, Tombstones int
	// Unpacked is the bytes of each group before compression.
	Unpacked [columnar.NumColumnGroups]int
}

// Encode makes a segment of documents in any order. Of those with one key the newest
// counts, as View.Apply says. It panics when a document is of another schema, or when
// the bounds MaxRows or MaxGroup would be exceeded.
func Encode(s *columnar.Schema, docs []columnar.Document) Encoded {
	e, err := encode(s, s.Newest(docs))
	if err != nil {
		panic(fmt.Sprintf("index: Encode: %v", err))
	}
	return e
}

// encode makes a segment of documents of distinct keys in the order of their keys.
func encode(s *columnar.Schema, docs []*columnar.Document) (Encoded, error) {
	w := writer{schema: s}
	dictionaries := columnar.NewDictionaries(s)
	for chunk := range slices.Chunk(docs, columnar.MaxRowGroup) {
		g := columnar.NewRowGroup(s)
		for _, d := range chunk {
			g.Append(d, dictionaries)
		}
		w.add(g)
	}
	blocks := w.frames[columnar.Core]
	w.frames[columnar.Core], w.raw = nil, w.raw[:0]
	for _, d := range dictionaries {
		if d != nil {
			w.raw = appendDictionary(w.raw, d)
		}
	}
	w.frame(columnar.Core, w.raw)
	w.frames[columnar.Core] = append(w.frames[columnar.Core], blocks...)
	return w.finish()
}

// writer makes the frames of a segment.
type writer struct {
	schema  *columnar.Schema
	frames  [columnar.NumColumnGroups][]byte
	raw     []byte
	encoded Encoded
}

func (w *writer) frame(g columnar.ColumnGroup, raw []byte) {
	w.encoded.Unpacked[g] += len(raw)
	w.frames[g] = appendFrame(w.frames[g], raw)
}

func (w *writer) add(g *columnar.RowGroup) {
	w.raw = appendBlock(w.raw[:0], w.schema, g)
	w.frame(columnar.Core, w.raw)
	for _, group := range w.schema.TextGroups() {
		w.raw = appendText(w.raw[:0], &g.Text[group])
		w.frame(group, w.raw)
	}
	w.encoded.Rows += g.Rows()
	w.encoded.Tombstones += g.Rows() - g.Live.Count()
}

func (w *writer) finish() (Encoded, error) {
	e := w.encoded
	if e.Rows > MaxRows || slices.Max(e.Unpacked[:]) > MaxGroup {
		return Encoded{}, fmt.Errorf("%d documents of %s with groups of %d bytes: %w", e.Rows, w.schema.Name(), e.Unpacked, ErrTooLarge)
	}
	sum := sha256.New()
	for _, frames := range w.frames {
		sum.Write(frames)
	}
	h := head{id: id(sum.Sum(nil)[:len(id{})]), rows: uint32(e.Rows), tombstones: uint32(e.Tombstones)}
	for g, frames := range w.frames {
		if group := columnar.ColumnGroup(g); w.schema.ColumnGroups().Has(group) {
			e.Groups[g] = appendSum(append(h.append(nil, w.schema, group), frames...))
		}
	}
	return e, nil
}

// Segment is a decoded segment, for one goroutine at a time.
type Segment struct {
	head
	batch  columnar.Batch
	schema *columnar.Schema
}

// Decode reads a segment's Core. It keeps nothing of core. Errors are ErrFormat, or
// ErrVersion when the segment was written in another format or with other columns
// than the schema's, wrapped. What is read takes at most MaxGroup bytes and as much
// again for the columns that queries compare.
func Decode(s *columnar.Schema, core []byte) (*Segment, error) {
	r, h, err := openGroup(s, columnar.Core, core)
	if err != nil {
		return nil, fmt.Errorf("decode a segment of %s: %w", s.Name(), err)
	}
	g := &Segment{head: h, schema: s, batch: columnar.Batch{Schema: s, Decoded: columnar.SetOf(columnar.Core)}}
	if g.read(r); r.Bad {
		return nil, fmt.Errorf("decode a segment of %s: %w", s.Name(), columnar.ErrFormat)
	}
	return g, nil
}

func (g *Segment) read(r *reader) {
	raw := &reader{strictbinary.Reader{Data: r.frame(nil, MaxGroup)}}
	g.batch.Dictionaries = columnar.NewDictionaries(g.schema)
	for _, d := range g.batch.Dictionaries {
		if d != nil {
			raw.dictionary(d)
		}
	}
	r.Fail(raw.Bad || len(raw.Data) > 0)
	b := blockReader{reader: r, schema: g.schema, dictionaries: g.batch.Dictionaries}
	deleted := 0
	for i := 0; g.rowsOf(i) > 0 && !r.Bad; i++ {
		if group := b.read(g.rowsOf(i)); !r.Bad {
			deleted += group.Rows() - group.Live.Count()
			g.batch.RowGroups = append(g.batch.RowGroups, group)
		}
	}
	r.Fail(len(r.Data) > 0 || deleted != g.Tombstones())
}

// rowsOf returns how many rows the i-th block has.
func (g *Segment) rowsOf(i int) int {
	return min(g.Rows()-i*columnar.MaxRowGroup, columnar.MaxRowGroup)
}

// Decode reads a group of text of the same segment; a group that was read before
// is left as it is. It keeps nothing of data. Errors are as of the function Decode;
// the segment is unchanged then. It panics when the segment is in a view.
func (g *Segment) Decode(group columnar.ColumnGroup, data []byte) error {
	if g.batch.InView() {
		panic("index: Decode: the segment is in a view; see Fill")
	}
	if g.batch.Decoded.Has(group) {
		return nil
	}
	text, err := g.decodeText(group, data)
	if err == nil {
		g.batch.Give(group, text)
	}
	return err
}

// Load loads segments into a view, which owns them from then on; see View.Load.
func Load(v *columnar.View, segments ...*Segment) {
	batches := make([]*columnar.Batch, len(segments))
	for i, g := range segments {
		batches[i] = &g.batch
	}
	v.Load(batches...)
}

// Fill gives a segment that is in the view a group of text; one that it has stays as
// it is. Queries go on while it decodes. Errors are as of Decode, and the view is
// unchanged then. It panics when the segment is not in the view.
func (g *Segment) Fill(v *columnar.View, group columnar.ColumnGroup, data []byte) error {
	text, err := g.decodeText(group, data)
	if err == nil {
		v.Fill(&g.batch, group, text)
	}
	return err
}

func (g *Segment) decodeText(group columnar.ColumnGroup, data []byte) ([]columnar.DecodedText, error) {
	if !slices.Contains(g.schema.TextGroups(), group) {
		panic(fmt.Sprintf("index: schema %s has no text in group %d", g.schema.Name(), group))
	}
	text, err := g.readText(group, data)
	if err != nil {
		return nil, fmt.Errorf("decode the %s of a segment of %s: %w", group, g.schema.Name(), err)
	}
	return text, nil
}

func (g *Segment) readText(group columnar.ColumnGroup, data []byte) ([]columnar.DecodedText, error) {
	r, h, err := openGroup(g.schema, group, data)
	if err != nil {
		return nil, err
	}
	if h != g.head {
		return nil, fmt.Errorf("of another segment: %w", columnar.ErrFormat)
	}
	t := newTextReader(r, g.schema, group)
	var text []columnar.DecodedText
	for i := range g.batch.RowGroups {
		text = append(text, t.read(g.rowsOf(i)))
	}
	if r.Bad || len(r.Data) > 0 {
		return nil, fmt.Errorf("%d row groups: %w", len(text), columnar.ErrFormat)
	}
	return text, nil
}

// Rows counts the documents, deleted ones among them.
func (g *Segment) Rows() int { return int(g.head.rows) }

// Tombstones counts the deleted documents.
func (g *Segment) Tombstones() int { return int(g.head.tombstones) }

// Documents returns the documents in the order of their keys, deleted ones among
// them. It panics unless all groups are decoded, and once a view owns the segment.
func (g *Segment) Documents() iter.Seq[columnar.Document] {
	g.mustBeWhole("Documents")
	return func(yield func(columnar.Document) bool) {
		for _, group := range g.batch.RowGroups {
			for row := range group.Rows() {
				if !yield(group.Document(row, g.batch.Dictionaries)) {
					return
				}
			}
		}
	}
}

// mustBeWhole panics unless all groups are decoded and no view owns the segment.
func (g *Segment) mustBeWhole(caller string) {
	if g.batch.InView() {
		panic(fmt.Sprintf("index: %s: the segment is in a view", caller))
	}
	if missing := g.schema.ColumnGroups() &^ g.batch.Decoded; missing != 0 {
		panic(fmt.Sprintf("index: %s: the %s of the segment is not decoded", caller, missing.First()))
	}
}
