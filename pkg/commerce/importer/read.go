package importer

import (
	"encoding/csv"
	"slices"
	"strings"
)

// RefusedColumn is the column of a CSV file that says why an earlier import
// refused the row. An import leaves it out.
const RefusedColumn = "refused"

// Read is what a record was read from.
type Read struct {
	Header    []string // of a CSV file; nil for JSON Lines
	Separator rune
	Rows      [][]string // the cells of each row, or one line of JSON
	Written   bool       // to the file of refused rows
}

// FirstLine is the header with [RefusedColumn] as its last column; empty for
// JSON Lines.
func (r *Read) FirstLine() string {
	if r.Header == nil {
		return ""
	}
	return r.line(r.Header, RefusedColumn)
}

// Lines are the rows. Those of a CSV file have one more cell, in the first row
// with the reason.
func (r *Read) Lines(reason string) (lines []string) {
	for _, row := range r.Rows {
		if r.Header == nil {
			lines = append(lines, row[0])
			continue
		}
		lines = append(lines, r.line(row, reason))
		reason = ""
	}
	return lines
}

// line writes a row with one more cell, without the one that an earlier import
// put there.
func (r *Read) line(cells []string, last string) string {
	if at := slices.Index(r.Header, RefusedColumn); at >= 0 && at < len(cells) {
		cells = slices.Delete(slices.Clone(cells), at, at+1)
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Comma = r.Separator
	_ = w.Write(append(slices.Clip(cells), last)) // a Builder takes everything
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}
