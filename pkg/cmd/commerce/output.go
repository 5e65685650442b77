package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/ops"
)

// writeTable aligns the cells of rows. The first row is the header.
func writeTable(out io.Writer, rows [][]string) error {
	const gap = 2
	w := tabwriter.NewWriter(out, 0, 0, gap, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if row[i] = visible(cell); cell == "" {
				row[i] = "-"
			}
		}
		if _, err := io.WriteString(w, strings.Join(row, "\t")+"\n"); err != nil {
			return err
		}
	}
	return w.Flush()
}

// visible makes the text of others safe for a terminal: it writes unprintable
// characters as JSON escapes.
func visible(text string) string {
	var out strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\ufffd") {
		if unicode.IsPrint(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}

// timeCell formats a time for a table; "" when it is not known.
func timeCell(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateTime + "Z")
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// printIncomplete says when a scan may have left messages unseen.
func printIncomplete(out io.Writer, scan *ops.QueueScan) {
	if seen, complete := scan.Seen(); !complete {
		fmt.Fprintf(out, "this is of the first %d messages; there may be more\n", seen)
	}
}

// printCounts prints messages of a scan that were counted by group, a row each
// below the header, and their number.
func printCounts[G any](out io.Writer, scan *ops.QueueScan, groups []ops.GroupCount[G], header []string, row func(ops.GroupCount[G]) []string, noun string) error {
	messages, rows := 0, [][]string{header}
	for _, g := range groups {
		messages += g.Messages
		rows = append(rows, row(g))
	}
	if len(groups) > 0 {
		if err := writeTable(out, rows); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, counted(messages, noun))
	printIncomplete(out, scan)
	return nil
}

func writeJSON(out io.Writer, v any) error {
	text, err := json.Marshal(v, ops.LenientJSON()...)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err = out.Write(append(text, '\n'))
	return err
}

func newLogger(out io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
}
