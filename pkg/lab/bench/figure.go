package bench

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table is a part of the report: a title, columns and a row for each figure,
// of which the first cell says what it is and the second what it is to be.
type table struct {
	rows [][]string
	note string // how it was measured, in a sentence or two
}

// newTable makes an empty table.
func newTable(title string, columns ...string) *table {
	return &table{rows: [][]string{append([]string{title, "target"}, columns...)}}
}

// add adds a row of figures. A target that is empty is none: the figure is
// there to be known.
func (t *table) add(name, target string, measured ...string) {
	t.rows = append(t.rows, append([]string{name, target}, measured...))
}

// print writes the table as Markdown that reads well as plain text.
func (t *table) print(w io.Writer) {
	width := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	fmt.Fprintln(w)
	for number, row := range t.rows {
		var line, rule strings.Builder
		for i, cell := range row {
			line.WriteString("| " + cell + strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+1))
			rule.WriteString("|" + strings.Repeat("-", width[i]+2))
		}
		fmt.Fprintln(w, line.String()+"|")
		if number == 0 {
			fmt.Fprintln(w, rule.String()+"|")
		}
	}
	if t.note != "" {
		fmt.Fprintln(w, "\n"+t.note)
	}
}
