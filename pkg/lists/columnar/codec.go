package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/strictbinary"
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

// ErrVersion says that bytes are a document or a segment in a later format than
// this program knows, or with columns that its schema declares otherwise.
var ErrVersion = errors.New("of another version of the index")

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
// it. The document keeps a part of data, which must not change any more. A column
// that the schema does not have yet is carried along and otherwise ignored. Errors
// are ErrFormat or ErrVersion, wrapped.
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
		return Document{}, nil, fmt.Errorf("format %d, this program knows %d: %w", data[0], formatVersion, ErrVersion)
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
	last, text := byte(0), 0
	for len(r.Data) > 0 {
		col, kind := r.Byte(), r.Byte()
		r.Fail(col <= last || col > maxColumns)
		last = col
		if r.Bad {
			break
		}
		column := Column{}
		if int(col) <= len(s.columns) {
			column = s.Column(Col(col))
			if !column.Type.takes(kind) {
				return fmt.Errorf("column %s holds a value of kind %d: %w", column.Name, kind, ErrVersion)
			}
		}
		text += skipValue(&r, kind, column.Type)
	}
	r.Fail(text > MaxText)
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
		return kind == kindString || kind == kindStrings
	}
}

// value passes over a value and returns how many bytes of text it holds.
func skipValue(r *strictbinary.Reader, kind byte, t ColumnType) (text int) {
	count := uint64(1)
	switch kind {
	case kindFalse, kindTrue:
		return 0
	case kindNumber:
		r.Varint()
		return 0
	case kindString:
	case kindStrings:
		count = r.Uvarint()
		r.Fail(count < 2)
	default:
		r.Bad = true
	}
	var last []byte
	for i := uint64(0); i < count && !r.Bad; i++ {
		v := r.Take(r.Uvarint())
		switch t {
		case Keyword:
			r.Fail(i > 0 && string(last) >= string(v))
		case Text:
			r.Fail(!utf8.Valid(v))
			text += len(v)
		}
		last = v
	}
	return text
}

// cell is the value of one column of a document; its kind says which field counts.
type cell struct {
	col    Col
	kind   byte
	number int64
	count  int
	list   []byte // count strings, each behind its length
}

// nextCell reads one value of a document that was built or decoded, so it cannot
// fail.
func nextCell(values []byte) (cell, []byte) {
	c := cell{col: Col(values[0]), kind: values[1]}
	r := strictbinary.Reader{Data: values[2:]}
	switch c.kind {
	case kindFalse, kindTrue:
		return c, r.Data
	case kindNumber:
		c.number = r.Varint()
		return c, r.Data
	case kindString:
		c.count = 1
	default:
		c.count = int(r.Uvarint())
	}
	c.list = r.Data
	for range c.count {
		r.Take(r.Uvarint())
	}
	c.list = c.list[:len(c.list)-len(r.Data)]
	return c, r.Data
}

// nextString reads one string of a cell's list.
func nextString(list []byte) (v, rest []byte) {
	r := strictbinary.Reader{Data: list}
	v = r.Take(r.Uvarint())
	return v, r.Data
}

// cell returns the value of a column, or false and an empty cell when it is null.
func (d *Document) cell(col Col) (cell, bool) {
	for values := d.values; len(values) > 0; {
		var c cell
		if c, values = nextCell(values); c.col == col {
			return c, true
		}
	}
	return cell{}, false
}
