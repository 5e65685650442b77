package importer

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/commerce-integration/service/pkg/base/value"
)

// sheet reads a CSV file (RFC 4180) with a header row, row by row.
type sheet struct {
	name   string
	in     *csv.Reader
	header []string
	warn   func(Place, string)
	// decimalComma says that amounts may have a comma for their point.
	decimalComma bool
	guarded      bool             // has cells that are guarded from spreadsheets
	found        map[string][]int // what positions has answered
	filled, used []bool           // columns that have values, and that were read
}

// sheetRow is one row of a sheet.
type sheetRow struct {
	*sheet
	place Place
	cells []string
}

// openSheet reads the header; it fails when a column is there twice.
func openSheet(name string, r io.Reader) (*sheet, error) {
	const longestHeader = 64 << 10
	in := bufio.NewReaderSize(r, longestHeader)
	start, _ := in.Peek(longestHeader) // an error comes again from Read
	s := &sheet{name: name, warn: func(Place, string) {}, found: map[string][]int{}}
	s.in = csv.NewReader(in)
	s.in.Comma, s.in.FieldsPerRecord = tellSeparator(start), -1
	header, err := s.in.Read()
	if err == io.EOF {
		return nil, fmt.Errorf("read %s: the file is empty; its first row must name the columns", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the header of %s: %w", name, err)
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	known := map[string]bool{}
	for i, column := range header {
		header[i] = strings.TrimSpace(column)
		if header[i] != "" && known[header[i]] {
			return nil, fmt.Errorf("read %s: column %q is there twice", name, header[i])
		}
		known[header[i]] = true
	}
	s.guarded = slices.Contains(header, RefusedColumn)
	s.header, s.filled, s.used = header, make([]bool, len(header)), make([]bool, len(header))
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

// each calls read for every row that can be read. The rows that cannot, or that
// read rejects, go to emit; another error ends the sheet.
func (s *sheet) each(emit emitter, read func(*sheetRow) error) error {
	for {
		row, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = read(row)
		}
		if err := emit.orReject(err); err != nil {
			return err
		}
	}
}

func (s *sheet) next() (*sheetRow, error) {
	cells, err := s.in.Read()
	place := Place{File: s.name}
	var syntax *csv.ParseError
	switch {
	case err == io.EOF:
		return nil, io.EOF
	case errors.As(err, &syntax):
		place.Line = syntax.StartLine
		return nil, &Rejection{Place: place, Reason: "malformed_csv", Message: syntax.Err.Error()}
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", s.name, err)
	}
	place.Line, _ = s.in.FieldPos(0)
	place.Read = &Read{Header: s.header, Separator: s.in.Comma, Rows: [][]string{cells}}
	if len(cells) != len(s.header) {
		message := fmt.Sprintf("the row has %d fields, the header %d", len(cells), len(s.header))
		return nil, &Rejection{Place: place, Reason: "malformed_csv", Message: message}
	}
	for i, cell := range cells {
		s.filled[i] = s.filled[i] || strings.TrimSpace(cell) != ""
	}
	return &sheetRow{sheet: s, place: place, cells: cells}, nil
}

// join adds the row to those of a record that began before it.
func (r *sheetRow) join(first *sheetRow) {
	first.place.Read.Rows = append(first.place.Read.Rows, r.place.Read.Rows...)
	r.place.Read = first.place.Read
}

// get returns the first cell of the columns that is not empty, and its column.
// Without one that is the first column, -1 for none.
func (r *sheetRow) get(columns string) (cell string, at int) {
	positions := r.positions(columns)
	for _, i := range positions {
		if cell := r.cell(i); cell != "" {
			return cell, i
		}
	}
	if len(positions) == 0 {
		return "", -1
	}
	return "", positions[0]
}

// cell returns a cell, trimmed. One that is not UTF-8 is read as Windows-1252,
// which is warned of once.
func (r *sheetRow) cell(i int) string {
	r.used[i] = true
	if !utf8.ValidString(r.cells[i]) {
		r.cells[i], _ = charmap.Windows1252.NewDecoder().String(r.cells[i]) // which decodes every byte
		r.warn(r.place, fmt.Sprintf("%s is not UTF-8, and read as Windows-1252: %q", r.header[i], r.cells[i]))
	}
	cell := strings.TrimSpace(r.cells[i])
	if r.guarded {
		cell = formulaGuard.ReplaceAllString(cell, "$1")
	}
	return cell
}

// formulaGuard is the apostrophe that the portal puts before what a spreadsheet would
// take for a formula, in a file of refused rows.
var formulaGuard = regexp.MustCompile(`^'([=+\-@\t\r\n＝＋－＠])`)

// reject refuses the row for the first of the columns that is there.
func (r *sheetRow) reject(columns, message string) *Rejection {
	field, _, _ := strings.Cut(columns, "|")
	if _, at := r.get(columns); at >= 0 {
		field = r.header[at]
	}
	return rejectField(r.place, field, "%s", message)
}

// columns returns the header.
func (s *sheet) columns() []any {
	names := make([]any, len(s.header))
	for i, name := range s.header {
		names[i] = name
	}
	return names
}

// series returns the cells of numbered columns, whose names have %d; nil for an
// empty one.
func (r *sheetRow) series(columns string) []any {
	cells := []any{}
	for n := 1; ; n++ {
		numbered := strings.ReplaceAll(columns, "%d", strconv.Itoa(n))
		if len(r.positions(numbered)) == 0 {
			return cells
		}
		cell, _ := r.get(numbered)
		cells = append(cells, maybeText(cell))
	}
}

// parseAmount reads an amount, which may have a decimal comma and points between
// thousands.
func (s *sheet) parseAmount(cell string) (value.Amount, error) {
	if whole, fraction, ok := strings.Cut(cell, ","); ok && s.decimalComma {
		cell = strings.ReplaceAll(whole, ".", "") + "." + fraction
	}
	return value.ParseAmount(cell)
}
