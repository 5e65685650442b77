package columnar

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/base/fold"
)

// MaxText bounds the folded text of one document in bytes. A Builder keeps the
// first MaxText bytes that it is given, cut at a code point, and drops the rest.
const MaxText = 192 << 10

// Document is what the index knows of one record. The values of its columns are
// set by a Builder or read by DecodeDocument; the other fields may be changed.
type Document struct {
	ID [16]byte
	// Sub distinguishes documents of the same ID; normally 0.
	Sub uint8
	// Revision orders the changes of one document; the same revision means the
	// same content.
	Revision int64
	// Visible is when this revision became visible in lists, in milliseconds since
	// 1970 UTC.
	Visible int64
	// Deleted says that the record is gone; the values are ignored then.
	Deleted bool

	schema *Schema
	values []byte // the columns that are not null, as doc.go specifies them
}

// Tombstone is the document of a deleted record.
func (s *Schema) Tombstone(id [16]byte, sub uint8, revision, visible int64) Document {
	return Document{ID: id, Sub: sub, Revision: revision, Visible: visible, Deleted: true, schema: s}
}

// Size is about how many bytes the document takes in memory.
func (d *Document) Size() int { return 64 + len(d.values) }

// Key orders documents: by id, then by sub.
type Key struct {
	ID  [16]byte
	Sub uint8
}

func (k Key) Compare(o Key) int {
	if c := bytes.Compare(k.ID[:], o.ID[:]); c != 0 {
		return c
	}
	return cmp.Compare(k.Sub, o.Sub)
}

func (d *Document) key() Key { return Key{d.ID, d.Sub} }

func (d *Document) version() version { return version{d.key(), d.Revision, d.Visible, d.Deleted} }

// Builder collects the values of one document. Columns that are not set are null.
// Its methods panic when a column is not of their type.
type Builder struct {
	schema *Schema
	id     [16]byte
	sub    uint8
	cells  []builderCell // by column
	text   int           // bytes of text taken so far
}

type builderCell struct {
	set     bool
	number  int64
	strings []string
}

// Build starts a document. A Builder is for one goroutine at a time.
func (s *Schema) Build(id [16]byte, sub uint8) *Builder {
	return &Builder{schema: s, id: id, sub: sub, cells: make([]builderCell, len(s.columns)+1)}
}

// Keyword adds values to a Keyword. Order and repetitions do not matter.
func (b *Builder) Keyword(c Col, values ...string) *Builder {
	column := b.schema.want(c, "Keyword", isType(Keyword))
	cell := &b.cells[c]
	for _, v := range values {
		if column.Fold {
			v = fold.String(v)
		}
		cell.strings = append(cell.strings, v)
	}
	return b
}

// Bool sets a Bool.
func (b *Builder) Bool(c Col, v bool) *Builder {
	b.schema.want(c, "Bool", isType(Bool))
	n := int64(0)
	if v {
		n = 1
	}
	return b.number(c, n)
}

// Number sets a Number.
func (b *Builder) Number(c Col, v int64) *Builder {
	b.schema.want(c, "Number", isType(Number))
	return b.number(c, v)
}

// Time sets a Time, in milliseconds since 1970 UTC.
func (b *Builder) Time(c Col, ms int64) *Builder {
	b.schema.want(c, "Time", isType(Time))
	return b.number(c, ms)
}

func (b *Builder) number(c Col, v int64) *Builder {
	b.cells[c].set, b.cells[c].number = true, v
	return b
}

// Text adds values to a Text, folding them, as far as MaxText allows.
func (b *Builder) Text(c Col, values ...string) *Builder {
	b.schema.want(c, "Text", isType(Text))
	cell := &b.cells[c]
	for _, v := range values {
		v = fold.String(v)
		if room := MaxText - b.text; len(v) > room {
			for room > 0 && !utf8.RuneStart(v[room]) {
				room--
			}
			if v = v[:room]; v == "" {
				break
			}
		}
		b.text += len(v)
		cell.strings = append(cell.strings, v)
	}
	return b
}

// Document returns the collected values.
func (b *Builder) Document(revision, visible int64) Document {
	var values []byte
	for i := range b.cells[1:] {
		values = b.appendCell(values, Col(i+1))
	}
	return Document{
		ID: b.id, Sub: b.sub, Revision: revision, Visible: visible,
		schema: b.schema, values: slices.Clip(values),
	}
}

func (b *Builder) appendCell(dst []byte, c Col) []byte {
	cell := &b.cells[c]
	switch b.schema.Column(c).Type {
	case Keyword:
		slices.Sort(cell.strings)
		cell.strings = slices.Compact(cell.strings)
		return appendStrings(dst, c, cell.strings)
	case Text:
		return appendStrings(dst, c, cell.strings)
	case Bool:
		if cell.set {
			dst = append(dst, byte(c), kindFalse+byte(cell.number))
		}
	default:
		if cell.set {
			dst = append(dst, byte(c), kindNumber)
			dst = binary.AppendVarint(dst, cell.number)
		}
	}
	return dst
}

// appendStrings appends the value of a column that has strings; nothing when there is
// none.
func appendStrings[S string | []byte](dst []byte, c Col, values []S) []byte {
	var list []byte
	for _, v := range values {
		list = appendString(list, v)
	}
	return appendList(dst, c, list)
}

func appendList(dst []byte, c Col, list []byte) []byte {
	if len(list) == 0 {
		return dst
	}
	return appendString(append(dst, byte(c), kindStrings), list)
}
