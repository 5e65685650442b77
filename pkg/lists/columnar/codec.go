package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/base/strictbinary"
)

// The kinds of values; doc.go specifies them.
const (
	kindFalse byte = iota
	kindTrue
	kindNumber
	kindStrings
)

// ErrFormat says that bytes are not a document, or a segment, in the form that
// doc.go specifies: they are cut off, altered or impossible.
var ErrFormat = errors.New("not in the format of the index")

// ErrVersion says that bytes are a document or a segment with columns that the
// schema declares otherwise, or in a format that is no longer read.
var ErrVersion = errors.New("of another version of the index")

// ErrNewer says that bytes are sound and in a later format than this program
// knows: a later release has written them. They are not damage.
var ErrNewer = errors.New("written by a later release")

// AppendDocument appends the encoded form of d. The same document always has the
// same bytes.
func AppendDocument(dst []byte, d *Document) []byte {
	values, deleted := d.values, byte(0)
	if d.Deleted {
		values, deleted = nil, 1
	}
	body := append(make([]byte, 0, 64), deleted, d.Sub)
	body = append(body, d.ID[:]...)
	body = binary.AppendVarint(body, d.Revision)
	body = binary.AppendVarint(body, d.Visible)
	dst = binary.AppendUvarint(dst, uint64(len(body)+len(values)))
	return append(append(dst, body...), values...)
}

// DecodeDocument reads the document at the start of data and returns what follows
// it. The document keeps a slice of data, which must not change from then on. A column
// that the schema does not have yet is carried along and otherwise ignored. Errors
// are ErrFormat or ErrVersion, wrapped.
func DecodeDocument(s *Schema, data []byte) (Document, []byte, error) {
	r := strictbinary.Reader{Data: data}
	body := r.Take(r.Uvarint())
	d, err := s.decodeBody(body)
	if err != nil {
		return Document{}, nil, fmt.Errorf("decode a document of %s: %w", s.name, err)
	}
	return d, r.Data, nil
}

func (s *Schema) decodeBody(body []byte) (Document, error) {
	r := strictbinary.Reader{Data: body}
	d := Document{schema: s}
	deleted := r.Byte()
	d.Deleted, d.Sub = deleted == 1, r.Byte()
	copy(d.ID[:], r.Take(uint64(len(d.ID))))
	d.Revision = r.Varint()
	d.Visible = r.Varint()
	if r.Bad || deleted > 1 || d.Deleted && len(r.Data) != 0 {
		return d, fmt.Errorf("head: %w", ErrFormat)
	}
	if err := s.checkValues(r.Data); err != nil {
		return d, err
	}
	if len(r.Data) != 0 {
		d.values = r.Data[:len(r.Data):len(r.Data)]
	}
	return d, nil
}

// checkValues checks the form of values, and that those of the schema's columns are of
// their types.
func (s *Schema) checkValues(values []byte) error {
	r := strictbinary.Reader{Data: values}
	last := Col(0)
	for len(r.Data) > 0 && !r.Bad {
		c := readCell(&r)
		r.Fail(c.col <= last || c.col > maxColumns)
		if last = c.col; r.Bad || int(c.col) > len(s.columns) {
			continue
		}
		column := s.Column(c.col)
		if !column.Type.takes(c.kind) {
			return fmt.Errorf("column %s holds a value of kind %d: %w", column.Name, c.kind, ErrVersion)
		}
		for v := range stringsIn(c.list) {
			r.Fail(column.Type == Text && !utf8.Valid(v))
		}
	}
	if r.Bad {
		return fmt.Errorf("values: %w", ErrFormat)
	}
	return nil
}

func (t ColumnType) takes(kind byte) bool {
	switch t {
	case Bool:
		return kind == kindFalse || kind == kindTrue
	case Number, Time:
		return kind == kindNumber
	default:
		return kind == kindStrings
	}
}

// cell is the value of one column of a document; its kind says which field counts.
type cell struct {
	col    Col
	kind   byte
	number int64
	list   []byte // strings, each behind its length
}

func readCell(r *strictbinary.Reader) cell {
	c := cell{col: Col(r.Byte()), kind: r.Byte()}
	switch c.kind {
	case kindFalse, kindTrue:
	case kindNumber:
		c.number = r.Varint()
	case kindStrings:
		c.list = r.Take(r.Uvarint())
		r.Fail(!ValidStrings(c.list))
	default:
		r.Fail(true)
	}
	return c
}

// ValidStrings says whether a list has strings, each behind its length.
func ValidStrings(list []byte) bool {
	r := strictbinary.Reader{Data: list}
	for len(r.Data) > 0 {
		r.Take(r.Uvarint())
	}
	return !r.Bad && len(list) > 0
}

// stringsIn yields the strings of a list.
func stringsIn(list []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for r := (strictbinary.Reader{Data: list}); len(r.Data) > 0; {
			if !yield(r.Take(r.Uvarint())) {
				return
			}
		}
	}
}

func appendString[S string | []byte](dst []byte, s S) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// MapText returns the document with what change makes of the values of a Text.
func (d *Document) MapText(col Col, change func(values []string) []string) Document {
	mapped := *d
	mapped.values = nil
	for r := (strictbinary.Reader{Data: d.values}); len(r.Data) > 0; {
		before := r.Data
		c := readCell(&r)
		if c.col != col {
			mapped.values = append(mapped.values, before[:len(before)-len(r.Data)]...)
			continue
		}
		var values []string
		for v := range stringsIn(c.list) {
			values = append(values, string(v))
		}
		mapped.values = appendStrings(mapped.values, col, change(values))
	}
	return mapped
}

// cells yields the values of a document that are not null, in the order of columns.
func (d *Document) cells() iter.Seq[cell] {
	return func(yield func(cell) bool) {
		for r := (strictbinary.Reader{Data: d.values}); len(r.Data) > 0; {
			if !yield(readCell(&r)) {
				return
			}
		}
	}
}

// cell returns the value of a column, or false and an empty cell when it is null.
func (d *Document) cell(col Col) (cell, bool) {
	for c := range d.cells() {
		if c.col == col {
			return c, true
		}
	}
	return cell{}, false
}
