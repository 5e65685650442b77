package importer

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// sheet reads a CSV file (RFC 4180) with a header row, row by row.
type sheet struct {
	name    string
	in      *csv.Reader
	header  []string
	columns map[string]int
	null    string // the cell that means no value, besides the empty one

	row  []string
	line int
	err  error // the first rejection of the row; what is read after it means nothing
}

// openSheet reads the header; it fails when one of the required columns is
// absent or a column is there twice.
func openSheet(name string, r io.Reader, required ...string) (*sheet, error) {
	s := &sheet{name: name, in: csv.NewReader(r), columns: map[string]int{}}
	s.in.FieldsPerRecord = -1
	s.in.ReuseRecord = true
	header, err := s.in.Read()
	if err == io.EOF {
		return nil, fmt.Errorf("read %s: the file is empty; its first row must name the columns", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the header of %s: %w", name, err)
	}
	s.header = slices.Clone(header)
	s.header[0] = strings.TrimPrefix(s.header[0], "\ufeff")
	for i, column := range s.header {
		s.header[i] = strings.TrimSpace(column)
		if _, twice := s.columns[s.header[i]]; twice {
			return nil, fmt.Errorf("read %s: column %q is there twice", name, s.header[i])
		}
		s.columns[s.header[i]] = i
	}
	for _, column := range required {
		if _, ok := s.columns[column]; !ok {
			return nil, fmt.Errorf("read %s: column %q is missing", name, column)
		}
	}
	return s, nil
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
		if !utf8.ValidString(cell) {
			return rejectField(s.place(), s.header[i], "is not valid UTF-8")
		}
	}
	return nil
}

func (s *sheet) place() Place { return Place{File: s.name, Line: s.line} }

// reject rejects the row for one of its fields, unless it is rejected already.
func (s *sheet) reject(field, format string, args ...any) {
	if s.err == nil {
		s.err = rejectField(s.place(), field, format, args...)
	}
}

// get returns the cell, trimmed; empty when there is no such column.
func (s *sheet) get(column string) string {
	i, ok := s.columns[column]
	if !ok {
		return ""
	}
	if cell := strings.TrimSpace(s.row[i]); cell != s.null {
		return cell
	}
	return ""
}

// text returns nil for an empty cell.
func (s *sheet) text(column string) *string { return orNil(s.get(column)) }

// amount returns nil for an empty cell.
func (s *sheet) amount(column string) *value.Amount {
	cell := s.get(column)
	if cell == "" {
		return nil
	}
	a, err := value.ParseAmount(cell)
	if err != nil {
		s.reject(column, "%s", err)
	}
	return &a
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
