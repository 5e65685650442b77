package bench

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Figure is one line of the report.
type Figure struct {
	Name     string
	Target   string // "" when there is none: a figure to know
	Measured string
}

// table collects the figures of a section.
type table struct {
	title   string
	note    string // what was measured, in a sentence
	figures []Figure
}

func (t *table) add(name, target, format string, args ...any) {
	t.figures = append(t.figures, Figure{name, target, fmt.Sprintf(format, args...)})
}

// print writes the table as Markdown that reads well as plain text.
func (t *table) print(w io.Writer) {
	rows := [][3]string{{t.title, "target", "measured"}}
	for _, f := range t.figures {
		rows = append(rows, [3]string{f.Name, f.Target, f.Measured})
	}
	var width [3]int
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	fmt.Fprintln(w)
	for i, row := range rows {
		var line strings.Builder
		for column, cell := range row {
			line.WriteString("| " + cell + strings.Repeat(" ", width[column]-utf8.RuneCountInString(cell)+1))
		}
		fmt.Fprintln(w, line.String()+"|")
		if i == 0 {
			fmt.Fprintf(w, "|%s|%s|%s|\n", strings.Repeat("-", width[0]+2), strings.Repeat("-", width[1]+2), strings.Repeat("-", width[2]+2))
		}
	}
	if t.note != "" {
		fmt.Fprintln(w, t.note)
	}
}
