package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/importer"
	"github.com/commerce-integration/service/pkg/ops"
)

// refusedRows writes the rows that an import refuses, with the first reason, so that
// they can be corrected and imported again; nil writes nothing.
type refusedRows struct {
	file  *os.File
	begun bool
}

func createRefused(path string, from []string) (*refusedRows, error) {
	if path == "" {
		return nil, nil
	}
	if len(from) > 1 {
		return nil, wrongUsage("--refused takes the rows of one file: import each file by itself")
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--refused: %w", err)
	}
	return &refusedRows{file: file}, nil
}

func (r *refusedRows) add(bad *importer.Rejection) error {
	read := bad.Place.Read
	if r == nil || read == nil || read.Written {
		return nil
	}
	read.Written = true // of several rows each may be refused
	lines := read.Lines(bad.Error())
	if first := read.FirstLine(); first != "" && !r.begun {
		lines = append([]string{first}, lines...)
	}
	r.begun = true
	if _, err := fmt.Fprintln(r.file, strings.Join(lines, "\n")); err != nil {
		return fmt.Errorf("--refused: %w", err)
	}
	return nil
}

func (r *refusedRows) close() error {
	if r == nil {
		return nil
	}
	return r.file.Close()
}

// warnings prints the first warnings of an import and counts the others.
type warnings struct {
	out   io.Writer
	count int
}

const maxWarnings = 20

func (w *warnings) add(place importer.Place, message string) {
	if w.count++; w.count <= maxWarnings {
		fmt.Fprintf(w.out, "warning: %s: %s\n", place, visible(message))
	}
}

func (w *warnings) end() {
	if more := w.count - maxWarnings; more > 0 {
		fmt.Fprintf(w.out, "and %s more\n", counted(more, "warning"))
	}
}

// changesOf reads messages that have been checked.
func changesOf(messages [][]byte) (changes []commerce.Change) {
	for _, message := range messages {
		parsed, _ := commerce.ParseMessage(message)
		changes = append(changes, parsed...)
	}
	return changes
}

// report prints what became of the records. First are the first records of each
// kind in a dry run, and nil in another.
func report(out io.Writer, source *importer.Source, s importer.Summary, first map[commerce.Kind]commerce.Change) {
	fmt.Fprintf(out, "accepted  %d\n", s.Sent)
	if s.AlreadySent > 0 {
		fmt.Fprintf(out, "before    %d (sent by the interrupted import)\n", s.AlreadySent)
	}
	fmt.Fprintf(out, "rejected  %d\n", s.Refused)
	for _, reason := range slices.Sorted(maps.Keys(s.Reasons)) {
		fmt.Fprintf(out, "  %d %s\n", s.Reasons[reason], reason)
	}
	for _, bad := range s.Rejected {
		fmt.Fprintf(out, "  %s\n", visible(bad.Error()))
	}
	if more := s.Refused - len(s.Rejected); more > 0 {
		fmt.Fprintf(out, "  and %d more\n", more)
	}
	if columns := source.NotImported(); len(columns) > 0 {
		fmt.Fprintf(out, "not imported: %s\n", visible(strings.Join(columns, ", ")))
	}
	if first == nil {
		return
	}
	fmt.Fprintf(out, "format    %s, and nothing was sent\n", source.Format)
	for _, kind := range commerce.Kinds() {
		if n := s.Kinds[kind]; n > 0 {
			const width = 1000
			fmt.Fprintf(out, "%s  %d, the first of them %s\n", kind.Plural(), n, visible(ops.Shorten(string(first[kind].Record), width)))
		}
	}
}
