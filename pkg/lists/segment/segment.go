package segment

import (
	"crypto/sha256"
	"errors"
	"fmt"
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
// them. Text is nil when the schema has none. The same documents make the same
// bytes, whatever their order, with the same release of zstd.
type Encoded struct {
	Groups [NumGroups][]byte
	// Rows counts the documents, and Tombstones how many of them are deleted.
	Rows, Tombstones int
	// Unpacked is the bytes of each group before compression.
	Unpacked [NumGroups]int
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
		g := columnar.NewRowGroup(s, true)
		for _, d := range chunk {
			g.Append(d, dictionaries)
		}
		w.add(g)
	}
	blocks := w.frames[Core]
	w.frames[Core], w.raw = nil, w.raw[:0]
	for _, d := range dictionaries {
		if d != nil {
			w.raw = appendDictionary(w.raw, d)
		}
	}
	w.frame(Core, w.raw)
	w.frames[Core] = append(w.frames[Core], blocks...)
	return w.finish()
}

// writer makes the frames of a segment.
type writer struct {
	schema  *columnar.Schema
	frames  [NumGroups][]byte
	raw     []byte
	encoded Encoded
}

func (w *writer) frame(g Group, raw []byte) {
	w.encoded.Unpacked[g] += len(raw)
	w.frames[g] = appendFrame(w.frames[g], raw)
}

func (w *writer) add(g *columnar.RowGroup) {
	w.raw = appendBlock(w.raw[:0], w.schema, g)
	w.frame(Core, w.raw)
	if w.schema.HasText() {
		w.raw = appendTexts(w.raw[:0], g.Text)
		w.frame(Text, w.raw)
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
	e.Groups[Core] = appendSum(append(h.append(nil, w.schema, Core), w.frames[Core]...))
	if w.schema.HasText() {
		e.Groups[Text] = appendSum(append(h.append(nil, w.schema, Text), w.frames[Text]...))
	}
	return e, nil
}

// Segment is a decoded segment, for one goroutine at a time.
type Segment struct {
	head
	batch columnar.Batch
}

// Decode reads a segment from its groups, of which text may be nil: then the segment has
// none. It keeps nothing of them. Errors are ErrFormat, or ErrVersion when the segment
// was written in another format or with other columns than the schema's, wrapped. What
// is read takes at most MaxGroup bytes of each group.
func Decode(s *columnar.Schema, core, text []byte) (*Segment, error) {
	g := &Segment{batch: columnar.Batch{Schema: s, Text: text != nil || !s.HasText()}}
	err := g.decodeCore(core)
	if err == nil && text != nil {
		err = g.decodeText(text)
	}
	if err != nil {
		return nil, fmt.Errorf("decode a segment of %s: %w", s.Name(), err)
	}
	return g, nil
}

func (g *Segment) decodeCore(data []byte) error {
	s := g.batch.Schema
	r, h, err := openGroup(s, Core, data)
	if err != nil {
		return err
	}
	g.head = h
	raw := &reader{strictbinary.Reader{Data: r.frame(nil, MaxGroup)}}
	g.batch.Dictionaries = columnar.NewDictionaries(s)
	for _, d := range g.batch.Dictionaries {
		if d != nil {
			raw.dictionary(d)
		}
	}
	r.Fail(raw.Bad || len(raw.Data) > 0)
	b := blocks{reader: r, schema: s, dictionaries: g.batch.Dictionaries}
	deleted := 0
	for n := g.rowsOf(0); n > 0 && !r.Bad; n = g.rowsOf(len(g.batch.RowGroups)) {
		if group := b.read(n); !r.Bad {
			deleted += n - group.Live.Count()
			g.batch.RowGroups = append(g.batch.RowGroups, group)
		}
	}
	return r.end(deleted == g.Tombstones())
}

func (g *Segment) decodeText(data []byte) error {
	r, h, err := openGroup(g.batch.Schema, Text, data)
	if err != nil {
		return err
	}
	if h != g.head {
		return fmt.Errorf("text of another segment: %w", columnar.ErrFormat)
	}
	for i, group := range g.batch.RowGroups {
		group.Text = r.texts(g.rowsOf(i), g.batch.Schema.TextColumns())
	}
	return r.end(true)
}

// rowsOf returns how many rows the i-th block has.
func (g *Segment) rowsOf(i int) int {
	return min(g.Rows()-i*columnar.MaxRowGroup, columnar.MaxRowGroup)
}

// Load loads segments into a view, which owns them from then on; see View.Load.
func Load(v *columnar.View, segments ...*Segment) {
	batches := make([]*columnar.Batch, len(segments))
	for i, g := range segments {
		batches[i] = &g.batch
	}
	v.Load(batches...)
}

// Rows counts the documents, deleted ones among them.
func (g *Segment) Rows() int { return int(g.head.rows) }

// Tombstones counts the deleted documents.
func (g *Segment) Tombstones() int { return int(g.head.tombstones) }

// Documents returns the documents in the order of their keys, deleted ones among
// them. It panics unless their text is decoded. It must not be asked once a view owns
// the segment.
func (g *Segment) Documents() []columnar.Document {
	if !g.batch.Text {
		panic("index: Documents: the text of the segment is not decoded")
	}
	docs := make([]columnar.Document, 0, g.Rows())
	for _, group := range g.batch.RowGroups {
		for row := range group.Rows() {
			docs = append(docs, group.Document(row, g.batch.Dictionaries))
		}
	}
	return docs
}
