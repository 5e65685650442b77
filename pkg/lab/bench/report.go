package bench

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/commerce-integration/service/pkg/lab/faults"
)

// table is a part of the report: a title, columns, and a row for each figure.
type table struct{ rows [][]string }

func newTable(columns ...string) *table {
	return &table{[][]string{append(columns, "service", "table", "calls", "write units", "read units", "log bytes", "$ a million")}}
}

// add adds a row: figures, and what one event or answer used.
func (t *table) add(name string, amount int, f figures, service, table time.Duration, units faults.Units, logged int64) {
	// Dollars of a million units, and of a million bytes, in us-east-1:
	// aws.amazon.com/dynamodb/pricing/on-demand, aws.amazon.com/cloudwatch/pricing.
	const writePrice, readPrice, logPrice = 0.625, 0.125, 0.0005
	f.of = max(1, f.of)
	cells := []string{name, strconv.Itoa(amount), fmt.Sprintf("%.0f", f.perSecond), "", ""}
	if len(f.latencies) > 0 {
		cells[3], cells[4] = milliseconds(f.latencies.Percentile(50)), milliseconds(f.latencies.Percentile(99))
	}
	if f.lists > 0 {
		cells = append(cells, fmt.Sprintf("%.1f s", f.lists.Seconds()))
	}
	cells = append(cells, milliseconds(service/time.Duration(f.of)), milliseconds(table/time.Duration(f.of)))
	for _, n := range []float64{float64(units.Calls), units.Writes, units.Reads} {
		cells = append(cells, fmt.Sprintf("%.2f", n/float64(f.of)))
	}
	dollars := units.Writes*writePrice + units.Reads*readPrice + float64(logged)*logPrice
	cells = append(cells, strconv.FormatInt(logged/int64(f.of), 10), fmt.Sprintf("%.2f", dollars/float64(f.of)))
	t.rows = append(t.rows, cells)
}

// print writes the table as Markdown that reads well as plain text.
func (t *table) print(w io.Writer) {
	rule := strings.Repeat("|---\t", len(t.rows[0])) + "|"
	aligned := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(aligned)
	for number, row := range t.rows {
		fmt.Fprintln(aligned, "| "+strings.Join(row, "\t| ")+"\t|")
		if number == 0 {
			fmt.Fprintln(aligned, rule)
		}
	}
	_ = aligned.Flush() // an error shows in the next write
}

// thisMachine is the environment on which a figure depends, with the processes that wanted a processor in the last minute.
func thisMachine(now time.Time) string {
	load, _ := os.ReadFile("/proc/loadavg") // absent outside of Linux
	one, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("%s, %d cores, %s %s/%s, %s; load %s", processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		now.UTC().Format("2006-01-02 15:04 UTC"), one)
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

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1000) }
