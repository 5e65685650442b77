package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/base/strictbinary"
)

const formatVersion = 1

// The kinds of values; doc.go specifies them.
const (
	kindFalse byte = iota
	kindTrue
	kindNumber
	kindString
	kindStrings
)

const (
	flagDeleted = 1 << iota
	flagSub
)

// ErrFormat says that bytes are not a document, or a segment, in the form that
// doc.go specifies: cut off, altered, or of another form for the same content.
var ErrFormat = errors.New("not in the format of the index")

// ErrVersion says that bytes are a document or a segment with columns that the
// schema declares otherwise, or in a format that is no longer read.
var ErrVersion = errors.New("of another version of the index")

// ErrNewer says that bytes are sound and in a later format than this program
// knows: a later release has written them. They are no damage.
var ErrNewer = errors.New("written by a later release")

// OtherFormat is the error for a format that is not the known one: ErrNewer for a
// later one, ErrVersion for an earlier one.
func OtherFormat(format, known int) error {
	if format > known {
		return ErrNewer
	}
	return ErrVersion
}

// AppendDocument appends the encoded form of d. The same document always has the
// same bytes.
func AppendDocument(dst []byte, d *Document) []byte {
	start := len(dst)
	body := make([]byte, 0, 48)
	flags, values := byte(0), d.values
	if d.Deleted {
		flags, values = flagDeleted, nil
	}
	if d.Sub != 0 {
		flags |= flagSub
	}
	body = append(body, flags)
	body = append(body, d.ID[:]...)
	if d.Sub != 0 {
		body = append(body, d.Sub)
	}
	body = binary.AppendVarint(body, d.Revision)
	body = binary.AppendVarint(body, d.Visible)
	dst = append(dst, formatVersion)
	dst = binary.AppendUvarint(dst, uint64(len(body)+len(values)))
	dst = append(dst, body...)
	dst = append(dst, values...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli()))
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// DecodeDocument reads the document at the start of data and returns what follows
// it. The document keeps a slice of data, which must not change from then on. A column
// that the schema does not have yet is carried along and otherwise ignored. Errors
// are ErrFormat, ErrVersion or ErrNewer, wrapped.
func DecodeDocument(s *Schema, data []byte) (Document, []byte, error) {
	d, rest, err := decode(s, data)
	if err != nil {
		return Document{}, nil, fmt.Errorf("decode a document of %s: %w", s.name, err)
	}
	return d, rest, nil
}

func decode(s *Schema, data []byte) (Document, []byte, error) {
	if len(data) == 0 {
		return Document{}, nil, fmt.Errorf("no bytes: %w", ErrFormat)
	}
	if data[0] != formatVersion {
		return Document{}, nil, fmt.Errorf("format %d, this program knows %d: %w", data[0], formatVersion, OtherFormat(int(data[0]), formatVersion))
	}
	r := strictbinary.Reader{Data: data[1:]}
	size := r.Uvarint()
	body := r.Take(size)
	sum := r.Take(crc32.Size)
	if r.Bad {
		return Document{}, nil, fmt.Errorf("cut off: %w", ErrFormat)
	}
	whole := data[:len(data)-len(r.Data)-crc32.Size]
	if crc32.Checksum(whole, castagnoli()) != binary.LittleEndian.Uint32(sum) {
		return Document{}, nil, fmt.Errorf("checksum differs: %w", ErrFormat)
	}
	d, err := decodeBody(s, body)
	return d, r.Data, err
}

func decodeBody(s *Schema, body []byte) (Document, error) {
	r := strictbinary.Reader{Data: body}
	d := Document{schema: s}
	flags := r.Byte()
	if flags&^(flagDeleted|flagSub) != 0 {
		return d, fmt.Errorf("flags %#x: %w", flags, ErrFormat)
	}
	d.Deleted = flags&flagDeleted != 0
	copy(d.ID[:], r.Take(uint64(len(d.ID))))
	if flags&flagSub != 0 {
		d.Sub = r.Byte()
		r.Fail(d.Sub == 0)
	}
	d.Revision = r.Varint()
	d.Visible = r.Varint()
	if r.Bad || d.Deleted && len(r.Data) != 0 {
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

// checkValues accepts exactly what a Builder writes.
func (s *Schema) checkValues(values []byte) error {
	r := strictbinary.Reader{Data: values}
	last, text := Col(0), 0
	for len(r.Data) > 0 {
		c := cell{col: Col(r.Byte()), kind: r.Byte()}
		if r.Fail(c.col <= last || c.col > maxColumns); r.Bad {
			break
		}
		last = c.col
		column := Column{}
		if int(c.col) <= len(s.columns) {
			column = s.Column(c.col)
			if !column.Type.takes(c.kind) {
				return fmt.Errorf("column %s holds a value of kind %d: %w", column.Name, c.kind, ErrVersion)
			}
		}
		if c.readValue(&r); r.Bad {
			break
		}
		var before []byte
		for v := range c.strings() {
			switch column.Type {
			case Keyword:
				r.Fail(before != nil && string(before) >= string(v))
				before = v
			case Text:
				r.Fail(!utf8.Valid(v))
				text += len(v)
			case Bool, Number, Time:
			}
		}
	}
	if r.Fail(text > MaxText); r.Bad {
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
		return kind == kindString || kind == kindStrings
	}
}

// cell is the value of one column of a document; its kind says which field counts.
type cell struct {
	col    Col
	kind   byte
	number int64
	count  int
	list   []byte // count strings, each behind its length
}

// readValue reads a value of the cell's kind.
func (c *cell) readValue(r *strictbinary.Reader) {
	count := uint64(0)
	switch c.kind {
	case kindFalse, kindTrue:
	case kindNumber:
		c.number = r.Varint()
	case kindString:
		count = 1
	case kindStrings:
		count = r.Uvarint()
		r.Fail(count < 2)
	default:
		r.Fail(true)
	}
	c.list = r.Data
	for i := uint64(0); i < count && !r.Bad; i++ {
		r.Take(r.Uvarint())
	}
	c.count, c.list = int(count), c.list[:len(c.list)-len(r.Data)]
}

// strings yields the strings of a cell.
func (c *cell) strings() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for r := (strictbinary.Reader{Data: c.list}); len(r.Data) > 0; {
			if !yield(r.Take(r.Uvarint())) {
				return
			}
		}
	}
}

// first returns the first string of a cell, nil when it has none.
func (c *cell) first() []byte {
	for v := range c.strings() {
		return v
	}
	return nil
}

// cells yields the values of a document that are not null, in the order of columns.
func (d *Document) cells() iter.Seq[cell] {
	return func(yield func(cell) bool) {
		for r := (strictbinary.Reader{Data: d.values}); len(r.Data) > 0; {
			c := cell{col: Col(r.Byte()), kind: r.Byte()}
			if c.readValue(&r); !yield(c) {
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
