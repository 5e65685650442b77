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

// table is a part of the report: a title, columns, and a row for each figure.
type table struct {
	rows [][]string
	note string // how it was measured
}

func newTable(title string, columns ...string) *table {
	return &table{rows: [][]string{append([]string{title}, columns...)}}
}

func (t *table) add(name string, cells ...string) {
	t.rows = append(t.rows, append([]string{name}, cells...))
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

// thisMachine is the environment on which a figure depends.
func thisMachine(now time.Time) string {
	return fmt.Sprintf("%s, %d cores, %s %s/%s, %s", processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		now.UTC().Format("2006-01-02 15:04 UTC"))
}

// processor is the model of the CPU, on Linux.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // absent elsewhere
	for line := range strings.Lines(string(text)) {
		if name, model, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return "unknown CPU"
}

// loadAverage is how many processes wanted a processor in the last minute, this one included.
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

// each is a time divided by so many events or answers.
func each(d time.Duration, events int) string { return milliseconds(d / time.Duration(max(1, events))) }

// amount writes a number with as many decimals as matter.
func amount(n float64) string {
	if n >= 0.095 || n == 0 {
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", n), "0"), ".")
	}
	return fmt.Sprintf("%.2g", n)
}
