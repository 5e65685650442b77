package segment

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
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
	dictionaries := columnar.NewDictionaries(s)
	var groups []*columnar.RowGroup
	for i, d := range s.Newest(docs) {
		if i%columnar.MaxRowGroup == 0 {
			groups = append(groups, columnar.NewRowGroup(s))
		}
		groups[len(groups)-1].Append(d, dictionaries)
	}
	sorted, codes := mergeDictionaries(s, [][]*columnar.Dictionary{dictionaries}, nil)
	w := newWriter(s, sorted)
	for _, g := range groups {
		for col, to := range codes[0] {
			if to == nil {
				continue
			}
			raw := g.Columns[col].Values.Raw
			for row, code := range raw {
				raw[row] = to[code]
			}
		}
		w.add(g)
	}
	e, err := w.finish()
	if err != nil {
		panic(fmt.Sprintf("index: Encode: %v", err))
	}
	return e
}

// mergeDictionaries merges the dictionaries of each Keyword; used has, by source and
// Col, the codes in use. It returns what the codes of each source become, by Col.
func mergeDictionaries(s *columnar.Schema, from [][]*columnar.Dictionary, used [][]columnar.Bits) ([]*columnar.Dictionary, [][][]int64) {
	merged := columnar.NewDictionaries(s)
	codes := make([][][]int64, len(from))
	for i := range codes {
		codes[i] = make([][]int64, len(merged))
	}
	for col := range merged {
		if merged[col] == nil {
			continue
		}
		var dictionaries []*columnar.Dictionary
		var codesInUse []columnar.Bits
		for i := range from {
			dictionaries = append(dictionaries, from[i][col])
			if used != nil {
				codesInUse = append(codesInUse, used[i][col])
			}
		}
		var become [][]int64
		merged[col], become = columnar.MergeDictionaries(dictionaries, codesInUse)
		for i := range from {
			codes[i][col] = become[i]
		}
	}
	return merged, codes
}

// writer makes a segment of row groups that are not packed. Their codes are of its
// dictionaries.
type writer struct {
	schema  *columnar.Schema
	frames  [columnar.NumColumnGroups][]byte // of the blocks
	lengths [columnar.NumColumnGroups][]byte // of the rows of text
	sizes   [columnar.NumColumnGroups]int
	sum     hash.Hash
	raw     []byte
	encoded Encoded
}

func newWriter(s *columnar.Schema, dictionaries []*columnar.Dictionary) *writer {
	w := &writer{schema: s, sum: sha256.New()}
	for _, d := range dictionaries {
		if d != nil {
			w.raw = appendDictionary(w.raw, d)
		}
	}
	w.frame(columnar.Core, w.raw)
	return w
}

func (w *writer) frame(g columnar.ColumnGroup, raw []byte) {
	w.sizes[g] += len(raw)
	w.sum.Write(raw)
	w.frames[g] = appendFrame(w.frames[g], raw)
}

func (w *writer) add(g *columnar.RowGroup) {
	w.raw = appendBlock(w.raw[:0], w.schema, g)
	w.frame(columnar.Core, w.raw)
	for _, group := range w.schema.TextGroups() {
		w.lengths[group] = appendLengths(w.lengths[group], &g.Text[group], g.Deleted())
		w.frame(group, g.Text[group].Data)
	}
	w.encoded.Rows += g.Rows()
	w.encoded.Tombstones += g.Rows() - g.Live.Count()
}

func (w *writer) finish() (Encoded, error) {
	for g, lengths := range w.lengths {
		w.sum.Write(lengths)
		w.sizes[g] += len(lengths)
	}
	e := w.encoded
	e.Unpacked = w.sizes
	if e.Rows > MaxRows || slices.Max(w.sizes[:]) > MaxGroup {
		return Encoded{}, fmt.Errorf("%d documents of %s with groups of %d bytes: %w", e.Rows, w.schema.Name(), w.sizes, ErrTooLarge)
	}
	id := id(w.sum.Sum(nil)[:len(id{})])
	core := appendHead(nil, w.schema, columnar.Core, id)
	core = binary.AppendUvarint(core, uint64(e.Rows))
	core = binary.AppendUvarint(core, uint64(e.Tombstones))
	e.Groups[columnar.Core] = appendSum(append(core, w.frames[columnar.Core]...))
	for _, g := range w.schema.TextGroups() {
		text := appendFrame(appendHead(nil, w.schema, g, id), w.lengths[g])
		e.Groups[g] = appendSum(append(text, w.frames[g]...))
	}
	return e, nil
}

// Segment is a decoded segment, for one goroutine at a time.
type Segment struct {
	batch      columnar.Batch
	schema     *columnar.Schema
	id         id
	deleted    []*columnar.RowSet // by block; nil where no document is deleted
	rows       int
	tombstones int
}

// Decode reads a segment's Core. It keeps nothing of core. Errors are ErrFormat, or
// ErrVersion when the segment was written in another format or with other columns
// than the schema's, wrapped. What is read takes at most MaxGroup bytes and as much
// again for the columns that queries compare.
func Decode(s *columnar.Schema, core []byte) (*Segment, error) {
	r, id, err := openGroup(s, columnar.Core, core)
	if err != nil {
		return nil, fmt.Errorf("decode a segment of %s: %w", s.Name(), err)
	}
	g := &Segment{schema: s, id: id, batch: columnar.Batch{Schema: s, Decoded: columnar.SetOf(columnar.Core)}}
	if !g.read(r) {
		return nil, fmt.Errorf("decode a segment of %s: %w", s.Name(), columnar.ErrFormat)
	}
	return g, nil
}

func (g *Segment) read(r *reader) bool {
	rows, tombstones := r.Uvarint(), r.Uvarint()
	if r.Bad || rows > MaxRows {
		return false
	}
	g.rows, g.tombstones = int(rows), int(tombstones)
	room := MaxGroup
	raw := r.frame(nil, room)
	room -= len(raw)
	if r.Bad || !g.readDictionaries(raw) {
		return false
	}
	b := newBlockReader(g.schema, g.batch.Dictionaries)
	found := 0
	for i := 0; g.rowsOf(i) > 0; i++ {
		n := g.rowsOf(i)
		b.raw = r.frame(b.raw, min(room, maxBlock(g.schema, n)))
		room -= len(b.raw)
		if r.Bad {
			return false
		}
		group, ok := b.read(g.schema, b.raw, n)
		if !ok {
			return false
		}
		found += n - group.Live.Count()
		g.batch.RowGroups = append(g.batch.RowGroups, group)
		g.deleted = append(g.deleted, b.deleted)
	}
	return len(r.Data) == 0 && found == g.tombstones && b.allUsed(g.batch.Dictionaries)
}

// rowsOf returns how many rows the i-th block has.
func (g *Segment) rowsOf(i int) int { return min(g.rows-i*columnar.MaxRowGroup, columnar.MaxRowGroup) }

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
	r, id, err := openGroup(g.schema, group, data)
	if err != nil {
		return nil, err
	}
	if id != g.id {
		return nil, fmt.Errorf("of another segment: %w", columnar.ErrFormat)
	}
	t := newTextReader(g.schema, group)
	lengths := &reader{strictbinary.Reader{Data: r.frame(nil, t.room)}}
	t.room -= len(lengths.Data)
	text := make([]columnar.DecodedText, 0, len(g.deleted))
	for i, deleted := range g.deleted {
		starts := t.starts(lengths, g.rowsOf(i), deleted)
		if lengths.Bad || r.Bad {
			break
		}
		size := int(starts[len(starts)-1])
		rows := columnar.TextRows{Data: r.frame(nil, size), Starts: starts}
		if r.Bad || len(rows.Data) != size {
			break
		}
		decoded, ok := t.scan(rows, deleted)
		if !ok {
			break
		}
		text = append(text, decoded)
	}
	if r.Bad || lengths.Bad || len(text) != len(g.deleted) || len(r.Data) > 0 || len(lengths.Data) > 0 {
		return nil, fmt.Errorf("block %d of %d: %w", len(text), len(g.deleted), columnar.ErrFormat)
	}
	return text, nil
}

// Rows counts the documents, deleted ones among them.
func (g *Segment) Rows() int { return g.rows }

// Tombstones counts the deleted documents.
func (g *Segment) Tombstones() int { return g.tombstones }

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
