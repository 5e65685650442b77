package importer

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
)

// sheet reads a CSV file (RFC 4180) with a header row, row by row.
type sheet struct {
	name    string
	in      *csv.Reader
	header  []string
	columns map[string]int
	row     []string
	line    int
	null    string // the cell that means no value, besides the empty one
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

// rows yields nil after moving to a row, a [*Rejection] for a row that cannot
// be read, after which the next can, and another error at most once, at the end.
func (s *sheet) rows() iter.Seq[error] {
	return func(yield func(error) bool) {
		for {
			err := s.next()
			if errors.Is(err, io.EOF) || !yield(err) || ends(err) {
				return
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
		return &Rejection{
			Place: s.place(), Reason: "malformed_csv",
			Message: fmt.Sprintf("the row has %d fields, the header %d", len(row), len(s.header)),
		}
	}
	for i, cell := range row {
		if !utf8.ValidString(cell) {
			return &Rejection{Place: s.place(), Reason: fault.CodeValidation, Field: s.header[i], Message: "is not valid UTF-8"}
		}
	}
	return nil
}

func (s *sheet) place() Place { return Place{File: s.name, Line: s.line} }

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
func (s *sheet) amount(column string) (*value.Amount, error) {
	cell := s.get(column)
	if cell == "" {
		return nil, nil
	}
	a, err := value.ParseAmount(cell)
	if err != nil {
		return nil, rejectField(s.place(), column, "%s", err)
	}
	return &a, nil
}
