package records

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// columns are those of a CSV file (RFC 4180): the fields of a shape, first those that
// are one value each, then those that hold several, as JSON.
type columns struct {
	header string
	at     map[string]int // by the field's name as JSON
}

// columnsOf returns the columns of the type of entries.
func columnsOf(entry any) *columns {
	var flat, nested []string
	t := reflect.TypeOf(entry)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := range t.NumField() {
		field, name := t.Field(i).Type, t.Field(i).Tag.Get("json")
		if field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		switch field.Kind() {
		case reflect.Slice, reflect.Struct, reflect.Map:
			nested = append(nested, name)
		default:
			flat = append(flat, name)
		}
	}
	names := slices.Concat(flat, nested)
	c := &columns{header: strings.Join(names, ",") + "\r\n", at: make(map[string]int, len(names))}
	for i, name := range names {
		c.at[`"`+name+`"`] = i
	}
	return c
}

// appendRow appends the row of an entry.
func (c *columns) appendRow(dst, entry []byte) []byte {
	cells := make([]jsontext.Value, len(c.at))
	d := jsontext.NewDecoder(bytes.NewBuffer(entry), jsontext.AllowDuplicateNames(true))
	// The entry is JSON of our own, so that reading does not fail.
	_, _ = d.ReadToken()
	for d.PeekKind() == '"' {
		name, _ := d.ReadValue()
		i, known := c.at[string(name)]
		value, _ := d.ReadValue()
		if end := int(d.InputOffset()); known {
			cells[i] = entry[end-len(value) : end]
		}
	}
	for i, cell := range cells {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCell(dst, cell)
	}
	return append(dst, "\r\n"...)
}

// formulas are the characters with which a text begins that spreadsheets take for a
// formula, unless an apostrophe stands before it; as in csv.ts of the portal.
const formulas = "=+-@\t\r\n＝＋－＠"

// appendCell appends a value: a text and what is JSON in quotes, a number or a
// boolean as it is, and nothing for null, so that it differs from an empty text.
func appendCell(dst []byte, value jsontext.Value) []byte {
	begin := len(dst) + 1
	switch value.Kind() {
	case 0, 'n':
		return dst
	case '"':
		dst, _ = jsontext.AppendUnquote(append(dst, '"'), value)
		if first, _ := utf8.DecodeRune(dst[begin:]); strings.ContainsRune(formulas, first) {
			dst = slices.Insert(dst, begin, '\'')
		}
	case '{', '[':
		dst = append(append(dst, '"'), value...)
	default:
		return append(dst, value...)
	}
	if bytes.IndexByte(dst[begin:], '"') >= 0 {
		dst = append(dst[:begin], bytes.ReplaceAll(dst[begin:], []byte(`"`), []byte(`""`))...)
	}
	return append(dst, '"')
}
