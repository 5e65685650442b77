package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/go-json-experiment/json"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/commerce-integration/service/pkg/ops"
)

// newBar returns a progress bar, which shows only on a terminal; max -1 means
// unknown. Its errors may be ignored: no command fails because of its bar.
func newBar(errOut io.Writer, description string, most int64, options ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(most, append(options,
		progressbar.OptionSetVisibility(isTerminal(errOut)), progressbar.OptionSetWriter(errOut),
		progressbar.OptionSetDescription(description), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())...)
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

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

// jsonFlag is the flag --json of a command, which prints its result for programs.
type jsonFlag bool

func (j *jsonFlag) flag(cmd *cobra.Command) {
	cmd.Flags().BoolVar((*bool)(j), "json", false, "print one object of JSON")
}

// print writes the result as JSON, or has text print it for people.
func (j jsonFlag) print(out io.Writer, result any, text func() error) error {
	if j {
		return writeJSON(out, result)
	}
	return text()
}

// printf is print with a text that is formatted.
func (j jsonFlag) printf(out io.Writer, result any, format string, args ...any) error {
	return j.print(out, result, func() error {
		_, err := fmt.Fprintf(out, format, args...)
		return err
	})
}

// printCounts prints messages of a scan that were counted by group: as JSON, or as
// a table, whose first row is the header, and a total.
func printCounts[G any](out io.Writer, asJSON jsonFlag, scan *ops.QueueScan, groups []ops.GroupCount[G], table [][]string, noun string) error {
	var result struct {
		Messages int                 `json:"messages"`
		Complete bool                `json:"complete"` // false when there may be more
		Groups   []ops.GroupCount[G] `json:"groups"`
	}
	result.Groups = groups
	_, result.Complete = scan.Seen()
	for _, g := range groups {
		result.Messages += g.Messages
	}
	return asJSON.print(out, result, func() error {
		if len(groups) > 0 {
			if err := writeTable(out, table); err != nil {
				return err
			}
		}
		fmt.Fprintln(out, counted(result.Messages, noun))
		printIncomplete(out, scan)
		return nil
	})
}

func writeJSON(out io.Writer, v any) error {
	text, err := json.Marshal(v, ops.LenientJSON()...)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err = out.Write(append(text, '\n'))
	return err
}
