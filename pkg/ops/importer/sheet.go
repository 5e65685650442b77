package importer

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// sheet reads a CSV file (RFC 4180) with a header row, row by row.
type sheet struct {
	name   string
	in     *csv.Reader
	header []string
	null   string // the cell that means no value, besides the empty one
	warn   func(Place, string)
	// decimalComma says that amounts may have a comma for their point.
	decimalComma bool
	found        map[string][]int // what positions has answered
	filled, used []bool           // columns that have values, and that were read

	row  []string
	line int
	raw  rawRows
	read *Read // the row, and those before it that belong to its record
	err  error // the first rejection of the row; what is read after it means nothing
}

// openSheet reads the header; it fails when one of the required columns is
// absent or a column is there twice. A separator of 0 is told by the header.
func openSheet(name string, r io.Reader, separator rune, required ...string) (*sheet, error) {
	const longestHeader = 64 << 10
	in := bufio.NewReaderSize(r, longestHeader)
	start, _ := in.Peek(longestHeader) // an error comes again from Read
	told := tellSeparator(start)
	s := &sheet{name: name, warn: func(Place, string) {}, found: map[string][]int{}, raw: rawRows{in: in}}
	s.in = csv.NewReader(&s.raw)
	s.in.Comma = cmp.Or(separator, told)
	s.in.FieldsPerRecord = -1
	s.in.ReuseRecord = true
	header, err := s.in.Read()
	if err == io.EOF {
		return nil, fmt.Errorf("read %s: the file is empty; its first row must name the columns", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the header of %s: %w", name, err)
	}
	if len(header) == 1 && told != s.in.Comma && strings.ContainsRune(header[0], told) {
		return nil, fmt.Errorf("read %s: the header is one column; its separator seems to be %q, not %q", name, told, s.in.Comma)
	}
	s.read = &Read{Header: strings.TrimPrefix(s.raw.take(s.in.InputOffset()), "\ufeff"), Separator: s.in.Comma}
	s.header = slices.Clone(header)
	s.header[0] = strings.TrimPrefix(s.header[0], "\ufeff")
	for i, column := range s.header {
		s.header[i] = strings.TrimSpace(column)
		if s.header[i] != "" && slices.Contains(s.header[:i], s.header[i]) {
			return nil, fmt.Errorf("read %s: column %q is there twice", name, s.header[i])
		}
	}
	s.filled, s.used = make([]bool, len(header)), make([]bool, len(header))
	for _, column := range required {
		if len(s.positions(column)) == 0 {
			return nil, fmt.Errorf("read %s: column %q is missing", name, column)
		}
	}
	return s, nil
}

// tellSeparator returns the separator that the first line has most of outside
// quotes: a comma unless it is a semicolon, a tab or a bar.
func tellSeparator(text []byte) rune {
	counts, quoted := map[rune]int{}, false
	for _, c := range string(text) {
		if c == '\n' && !quoted {
			break
		}
		if c == '"' {
			quoted = !quoted
		}
		if !quoted {
			counts[c]++
		}
	}
	best := ','
	for _, c := range ";\t|" {
		if counts[c] > counts[best] {
			best = c
		}
	}
	return best
}

// positions returns where the columns are, whose names are separated by bars,
// in the order in which they are named. Capitals do not count.
func (s *sheet) positions(columns string) []int {
	at, known := s.found[columns]
	if !known {
		for name := range strings.SplitSeq(columns, "|") {
			if i := slices.IndexFunc(s.header, func(h string) bool { return strings.EqualFold(h, name) }); i >= 0 {
				at = append(at, i)
			}
		}
		s.found[columns] = at
	}
	return at
}

// each calls row for every row that can be read. The rows that cannot, or that
// row rejects, go to emit.
func (s *sheet) each(emit emitter, row func()) error {
	for {
		if s.err = s.next(); errors.Is(s.err, io.EOF) {
			return nil
		}
		if s.err == nil {
			row()
		}
		if s.err != nil {
			if err := emit(Record{}, s.err); err != nil {
				return err
			}
		}
	}
}

func (s *sheet) next() error {
	row, err := s.in.Read()
	s.read = &Read{Header: s.read.Header, Separator: s.read.Separator, Rows: []string{s.raw.take(s.in.InputOffset())}}
	var syntax *csv.ParseError
	switch {
	case err == io.EOF:
		return io.EOF
	case errors.As(err, &syntax):
		s.line = syntax.StartLine
		return &Rejection{Place: s.place(), Reason: "malformed_csv", Message: syntax.Err.Error()}
	case err != nil:
		return fmt.Errorf("read %s: %w", s.name, err)
	}
	s.line, _ = s.in.FieldPos(0)
	s.row = row
	if len(row) != len(s.header) {
		message := fmt.Sprintf("the row has %d fields, the header %d", len(row), len(s.header))
		return &Rejection{Place: s.place(), Reason: "malformed_csv", Message: message}
	}
	for i, cell := range row {
		s.filled[i] = s.filled[i] || strings.TrimSpace(cell) != ""
	}
	return nil
}

// join adds the row to those of a record that began before it.
func (s *sheet) join(record Place) {
	record.Read.Rows = append(record.Read.Rows, s.read.Rows...)
	s.read = record.Read
}

func (s *sheet) place() Place { return Place{File: s.name, Line: s.line, Read: s.read} }

// reject rejects the row for one of its fields, unless it is rejected already.
func (s *sheet) reject(field, format string, args ...any) {
	if at := s.positions(field); len(at) > 0 {
		field = s.header[at[0]]
	}
	if s.err == nil {
		s.err = rejectField(s.place(), field, format, args...)
	}
}

// get returns the first cell of the columns that is not empty, trimmed.
func (s *sheet) get(columns string) string {
	for _, i := range s.positions(columns) {
		if cell := s.cell(i); cell != "" {
			return cell
		}
	}
	return ""
}

// cell returns a cell, trimmed and with its encoding mended, which is warned of
// once.
func (s *sheet) cell(i int) string {
	s.used[i] = true
	mended, changes := mend(s.row[i])
	if changes != "" {
		s.row[i] = mended
		s.warn(s.place(), s.header[i]+": "+changes)
	}
	if mended = strings.TrimSpace(mended); mended == s.null {
		return ""
	}
	return mended
}

// maybe returns nil for an empty cell.
func (s *sheet) maybe(columns string) *string { return orNil(s.get(columns)) }

// amount returns nil for an empty cell.
func (s *sheet) amount(column string) *value.Amount {
	cell := s.get(column)
	if cell == "" {
		return nil
	}
	if s.decimalComma {
		cell = withPoint(cell)
	}
	a, err := value.ParseAmount(cell)
	if err != nil {
		s.reject(column, "%s", err)
	}
	return &a
}

// withPoint writes an amount that has a decimal comma, and perhaps points
// between thousands, as JSON does.
func withPoint(cell string) string {
	if whole, fraction, ok := strings.Cut(cell, ","); ok {
		return strings.ReplaceAll(whole, ".", "") + "." + fraction
	}
	return cell
}

// texts makes a free-form object of the cells that are not empty: columns
// names the column of each member.
func (s *sheet) texts(columns map[string]string) map[string]any {
	object := map[string]any{}
	for member, column := range columns {
		if cell := s.get(column); cell != "" {
			object[member] = cell
		}
	}
	return object
}

// object makes the JSON object of names and values that alternate, in their
// order. A nil value is left out: the field then takes the service's default
// or is derived there.
func object(pairs ...any) jsontext.Value {
	b := []byte{'{'}
	for i := 0; i < len(pairs); i += 2 {
		v := encode(pairs[i+1])
		if v.Kind() == 'n' {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(b, encode(pairs[i])...), ':')
		b = append(b, v...)
	}
	return append(b, '}')
}

// encode writes the members of maps in the order of their names, so that the
// same source gives the same bytes.
func encode(v any) jsontext.Value {
	text, err := json.Marshal(v, json.Deterministic(true), json.FormatNilSliceAsNull(true))
	if err != nil {
		panic(fmt.Sprintf("importer: texts and scalars are always JSON: %v", err))
	}
	return text
}

// orNil is nil for an empty text.
func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
