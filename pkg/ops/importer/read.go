package importer

import (
	"encoding/csv"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// RefusedColumn is the column of a CSV file, and the member of a line of JSON,
// that says why an earlier import refused it. An import leaves it out.
const RefusedColumn = "refused"

// Read is the text that a record was read from, without the ends of its lines.
type Read struct {
	Header    string // of a CSV file; empty for JSON Lines
	Separator rune
	Rows      []string
}

// FirstLine is the header with [RefusedColumn] as its last column; empty for
// JSON Lines.
func (r *Read) FirstLine() string {
	if r.Header == "" {
		return ""
	}
	return r.withCell(r.Header, RefusedColumn)
}

// Lines are the rows, the first with the reason. A line that is no object of JSON
// has no place for a reason.
func (r *Read) Lines(reason string) []string {
	lines := make([]string, len(r.Rows))
	for i, row := range r.Rows {
		switch {
		case r.Header != "":
			lines[i] = r.withCell(row, reason)
		case jsontext.Value(row).Kind() == '{' && jsontext.Value(row).IsValid():
			lines[i] = string(withMember(withoutRefused([]byte(strings.TrimSpace(row))), RefusedColumn, reason))
		default:
			lines[i] = row
		}
		reason = ""
	}
	return lines
}

// withCell puts a last cell behind a row, in the place of the one that an earlier
// import put there.
func (r *Read) withCell(row, cell string) string {
	if header := r.cells(r.Header); len(header) > 0 && header[len(header)-1] == RefusedColumn {
		if cells := r.cells(row); len(cells) == len(header) {
			return r.line(append(cells[:len(cells)-1], cell)...)
		}
	}
	return row + string(r.Separator) + r.line(cell)
}

func (r *Read) cells(row string) []string {
	in := csv.NewReader(strings.NewReader(row))
	in.Comma = r.Separator
	cells, _ := in.Read()
	return cells
}

func (r *Read) line(cells ...string) string {
	if len(cells) == 1 && cells[0] == "" { // which the writer quotes
		return ""
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Comma = r.Separator
	_ = w.Write(cells) // a Builder takes everything
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// withoutRefused takes the reason off that [Read.Lines] put in front.
func withoutRefused(line []byte) []byte {
	rest, found := strings.CutPrefix(string(line), `{"`+RefusedColumn+`":"`)
	if !found {
		return line
	}
	for end := 0; end < len(rest); end++ {
		switch rest[end] {
		case '\\':
			end++
		case '"':
			return []byte("{" + strings.TrimPrefix(rest[end+1:], ","))
		}
	}
	return line
}

// rawRows keeps what a CSV reader has read ahead, to tell the text of its rows.
type rawRows struct {
	in   io.Reader
	kept []byte
	from int64 // where it begins
}

// Read implements [io.Reader].
func (r *rawRows) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.kept = append(r.kept, p[:n]...)
	return n, err
}

// take returns the text up to the offset, and forgets it.
func (r *rawRows) take(end int64) string {
	n := int(end - r.from)
	text := strings.Trim(string(r.kept[:n]), "\r\n")
	r.kept, r.from = append(r.kept[:0], r.kept[n:]...), end
	return text
}
