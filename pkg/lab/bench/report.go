package bench

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// table is a part of the report: a title, columns and a row for each figure.
// The first cell says what it is and the second its target.
type table struct {
	rows [][]string
	note string // how it was measured, in a sentence or two
}

// table begins a table of the current section.
func (b *bench) table(title string, columns ...string) *table {
	t := &table{rows: [][]string{append([]string{title, "target"}, columns...)}}
	b.tables = append(b.tables, t)
	return t
}

// add adds a row of figures. The target is empty for a figure without one.
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

// thisMachine is what a figure depends on beside the code.
func thisMachine(now time.Time) string {
	return fmt.Sprintf("%s, %d cores, %s %s/%s, %s", processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		now.UTC().Format("2006-01-02 15:04 UTC"))
}

// processor is the model of the CPU, where the system tells it.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // absent outside of Linux
	for line := range strings.Lines(string(text)) {
		if name, model, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return "unknown CPU"
}

// loadAverage is how many processes wanted a processor in the last minute, this
// one included: it shows what else runs on the machine.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

// thousands writes a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func milliseconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms >= 10:
		return fmt.Sprintf("%.0f ms", ms)
	case ms >= 0.1:
		return fmt.Sprintf("%.2f ms", ms)
	}
	return fmt.Sprintf("%.0f µs", ms*1000)
}

func kilobytes(n float64) string { return fmt.Sprintf("%.1f KB", n/1000) }

// amount writes a number with as many decimals as matter.
func amount(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n >= 100:
		return thousands(int(n + 0.5))
	case n >= 0.095:
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", n), "0"), ".")
	}
	return fmt.Sprintf("%.2g", n)
}
