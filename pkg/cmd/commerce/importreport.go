package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/ops/importer"
)

// refusedRows writes the rows that an import refuses as they were read, with the
// first reason, so that they can be corrected and imported again; nil writes nothing.
type refusedRows struct {
	path    string
	files   []*os.File
	headers map[string]int // the file of each first line
	last    *importer.Read
	written map[*importer.Read]bool // of several rows, which a later batch may refuse, too
}

func createRefused(path string) (*refusedRows, error) {
	if path == "" {
		return nil, nil
	}
	r := &refusedRows{path: path, headers: map[string]int{}, written: map[*importer.Read]bool{}}
	return r, r.create(path)
}

func (r *refusedRows) create(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("--refused: %w", err)
	}
	r.files = append(r.files, file)
	return nil
}

func (r *refusedRows) add(bad *importer.Rejection) error {
	if r == nil || bad.Place.Read == nil || r.last == bad.Place.Read || r.written[bad.Place.Read] {
		return nil
	}
	r.last = bad.Place.Read
	if len(r.last.Rows) > 1 {
		r.written[r.last] = true
	}
	lines := r.last.Lines(bad.Error())
	file, err := r.file(r.last.FirstLine())
	if err == nil {
		_, err = fmt.Fprintln(file, strings.Join(lines, "\n"))
	}
	if err != nil {
		return fmt.Errorf("--refused: %w", err)
	}
	return nil
}

// file returns the file of the rows under a header: the named one, or for a
// further header one beside it.
func (r *refusedRows) file(first string) (*os.File, error) {
	i, known := r.headers[first]
	if known {
		return r.files[i], nil
	}
	i = len(r.headers)
	if i > 0 {
		extension := filepath.Ext(r.path)
		if err := r.create(fmt.Sprintf("%s-%d%s", strings.TrimSuffix(r.path, extension), i+1, extension)); err != nil {
			return nil, err
		}
	}
	r.headers[first] = i
	if first == "" {
		return r.files[i], nil
	}
	_, err := fmt.Fprintln(r.files[i], first)
	return r.files[i], err
}

func (r *refusedRows) close() (err error) {
	if r == nil {
		return nil
	}
	for _, file := range r.files {
		err = errors.Join(err, file.Close())
	}
	return err
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

// preview keeps the first records of each kind and sends nothing.
type preview map[commerce.Kind][]commerce.Change

const previewed = 3

func (p preview) send(_ context.Context, batch importer.Batch) ([]importer.Refused, error) {
	for _, change := range changesOf(batch.Messages) {
		if len(p[change.Kind]) < previewed {
			p[change.Kind] = append(p[change.Kind], change)
		}
	}
	return nil, nil
}

// changesOf reads messages that have been checked.
func changesOf(messages [][]byte) (changes []commerce.Change) {
	for _, message := range messages {
		parsed, _ := commerce.ParseMessage(message)
		changes = append(changes, parsed...)
	}
	return changes
}

// importReport is what an import prints at its end.
type importReport struct {
	Format   importer.Format       `json:"format"`
	DryRun   bool                  `json:"dryRun"`   // nothing was sent
	Accepted int                   `json:"accepted"` // by this run
	Before   int                   `json:"before"`   // sent by the interrupted import
	Kinds    map[commerce.Kind]int `json:"kinds"`    // all of these
	Repeated int                   `json:"repeated"` // with the id of an earlier record
	Rejected int                   `json:"rejected"`

	SharedSKUs  []string       `json:"sharedSkus"`  // that several products have
	NotImported []string       `json:"notImported"` // columns with values
	Reasons     map[string]int `json:"reasons"`     // of the rejected
	Rejections  []string       `json:"rejections"`  // the first of them

	first preview
}

func newImportReport(source *importer.Source, s importer.Summary, first preview) *importReport {
	r := &importReport{
		Format: source.Format, DryRun: first != nil, Accepted: s.Sent, Before: s.AlreadySent, Kinds: s.Kinds,
		Repeated: s.Repeated, Rejected: s.Refused, Reasons: s.Reasons,
		SharedSKUs: s.SharedSKUs, NotImported: source.NotImported(), first: first,
	}
	for _, bad := range s.Rejected {
		r.Rejections = append(r.Rejections, bad.Error())
	}
	return r
}

func (r *importReport) print(out io.Writer) error {
	if r.DryRun {
		r.printKinds(out)
	} else {
		fmt.Fprintf(out, "accepted  %d\n", r.Accepted)
	}
	if r.Before > 0 {
		fmt.Fprintf(out, "before    %d (sent by the interrupted import)\n", r.Before)
	}
	fmt.Fprintf(out, "rejected  %d\n", r.Rejected)
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		fmt.Fprintf(out, "  %d %s\n", r.Reasons[reason], reason)
	}
	for _, rejection := range r.Rejections {
		fmt.Fprintf(out, "  %s\n", rejection)
	}
	if more := r.Rejected - len(r.Rejections); more > 0 {
		fmt.Fprintf(out, "  and %d more\n", more)
	}
	r.printLosses(out)
	return r.first.print(out)
}

// printKinds says what a dry run would send.
func (r *importReport) printKinds(out io.Writer) {
	fmt.Fprintf(out, "format    %s\naccepted  %d, of which nothing is sent\n", r.Format, r.Accepted)
	for _, kind := range commerce.Kinds() {
		if n := r.Kinds[kind]; n > 0 {
			fmt.Fprintf(out, "  %-12s%d\n", kind.Plural(), n)
		}
	}
	if r.Repeated > 0 {
		fmt.Fprintf(out, "  repeated    %d (with the id of an earlier record)\n", r.Repeated)
	}
}

// printLosses says what may be missed later. An export of hundreds of variants
// may share many SKUs, so that only the first are named.
func (r *importReport) printLosses(out io.Writer) {
	const shown = 10
	if n := len(r.SharedSKUs); n > 0 {
		first := strings.Join(r.SharedSKUs[:min(n, shown)], ", ")
		if n > shown {
			first += ", …"
		}
		fmt.Fprintf(out, "several products share %s: %s\n", counted(n, "SKU"), visible(first))
	}
	if len(r.NotImported) > 0 {
		fmt.Fprintf(out, "not imported: %s\n", visible(strings.Join(r.NotImported, ", ")))
	}
}

func (p preview) print(out io.Writer) error {
	for _, kind := range commerce.Kinds() {
		for i, change := range p[kind] {
			if i == 0 {
				fmt.Fprintf(out, "\nfirst %s\n", kind.Plural())
			}
			if err := printRecord(out, change.Record); err != nil {
				return err
			}
		}
	}
	return nil
}

// printRecord writes the fields of a record, and only the beginnings of long ones.
func printRecord(out io.Writer, record jsontext.Value) error {
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(record, &fields); err != nil {
		return fmt.Errorf("read a record: %w", err)
	}
	mark := "-"
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		const width = 100
		fmt.Fprintf(out, "%s %s: %s\n", mark, name, visible(ops.Shorten(string(fields[name]), width)))
		mark = " "
	}
	return nil
}
