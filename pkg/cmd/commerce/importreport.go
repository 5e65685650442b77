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

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/ops/importer"
)

// refusedRows writes the rows that an import refuses as they were read, with the
// reasons, so that they can be corrected and imported again; nil writes nothing.
type refusedRows struct {
	path    string
	files   map[string]*os.File // by their first line
	written map[*importer.Read]bool

	// The rows of the last record, which may grow and get more reasons.
	last    *importer.Read
	reasons []string
}

func createRefused(path string) (*refusedRows, error) {
	if path == "" {
		return nil, nil
	}
	r := &refusedRows{path: path, files: map[string]*os.File{}, written: map[*importer.Read]bool{}}
	file, err := r.create(path)
	r.files[notBegun] = file
	return r, err
}

// notBegun is the first line of a file that has none yet.
const notBegun = "\n"

func (*refusedRows) create(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--refused: %w", err)
	}
	return file, nil
}

func (r *refusedRows) add(bad *importer.Rejection) error {
	if r == nil || bad.Place.Read == nil || r.written[bad.Place.Read] {
		return nil
	}
	if r.last != bad.Place.Read {
		if err := r.flush(); err != nil {
			return err
		}
		r.last = bad.Place.Read
	}
	r.reasons = append(r.reasons, bad.Error())
	return nil
}

// flush writes the rows of the last record.
func (r *refusedRows) flush() error {
	if r.last == nil {
		return nil
	}
	file, err := r.file(r.last.FirstLine())
	if err != nil {
		return err
	}
	for _, line := range r.last.Lines(strings.Join(r.reasons, "; ")) {
		if _, err := fmt.Fprintln(file, line); err != nil {
			return fmt.Errorf("--refused: %w", err)
		}
	}
	if len(r.last.Rows) > 1 { // another refusal of the record may come with a later batch
		r.written[r.last] = true
	}
	r.last, r.reasons = nil, nil
	return nil
}

// file returns the file of the rows under a header: the named one, or for a
// further header one beside it.
func (r *refusedRows) file(first string) (file *os.File, err error) {
	if file = r.files[first]; file != nil {
		return file, nil
	}
	if file = r.files[notBegun]; file != nil {
		delete(r.files, notBegun)
	} else {
		extension := filepath.Ext(r.path)
		if file, err = r.create(fmt.Sprintf("%s-%d%s", strings.TrimSuffix(r.path, extension), len(r.files)+1, extension)); err != nil {
			return nil, err
		}
	}
	r.files[first] = file
	if first != "" {
		if _, err = fmt.Fprintln(file, first); err != nil {
			err = fmt.Errorf("--refused: %w", err)
		}
	}
	return file, err
}

func (r *refusedRows) close() error {
	if r == nil {
		return nil
	}
	err := r.flush()
	for _, file := range r.files {
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("--refused: %w", err)
	}
	return nil
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

// previewSender keeps the first records of each kind and sends nothing.
type previewSender map[commerce.Kind][]commerce.Change

const previewed = 3

// Send implements [importer.Sender].
func (p previewSender) Send(_ context.Context, batch importer.Batch) ([]importer.Refused, error) {
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

// preview checks the whole source and shows what an import would send.
func (c *importCommand) preview(ctx context.Context, source *importer.Source, refused *refusedRows, warnings *warnings, out io.Writer) error {
	if err := c.parseIDs(); err != nil && c.organization != "" {
		return err
	}
	if c.organizationID.IsZero() { // no service runs here, and the records need none
		c.organizationID = value.NewID()
	}
	first := previewSender{}
	summary, err := importer.Run(ctx, source.Records(), c.organizationID, first, importer.Config{
		Events: c.events, Sites: c.siteIDs, Refused: refused.add, Warn: warnings.add,
	})
	warnings.end()
	if err != nil {
		return unlessInterrupted(err)
	}
	return errors.Join(c.json.print(out, c.result(source, summary), func() error {
		return printPreview(out, source, summary, first)
	}), refusedError(summary))
}

// importResult is what an import prints as JSON.
type importResult struct {
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
}

func (c *importCommand) result(source *importer.Source, s importer.Summary) importResult {
	r := importResult{
		Format: source.Format, DryRun: c.dryRun, Accepted: s.Sent, Before: s.AlreadySent, Kinds: s.Kinds,
		Repeated: s.Repeated, Rejected: s.Refused, Reasons: s.Reasons,
		SharedSKUs: s.SharedSKUs, NotImported: source.NotImported(),
	}
	for _, bad := range s.Rejected {
		r.Rejections = append(r.Rejections, bad.Error())
	}
	return r
}

func printPreview(out io.Writer, source *importer.Source, summary importer.Summary, first previewSender) error {
	fmt.Fprintf(out, "format    %s\naccepted  %d, of which nothing is sent\n", source.Format, summary.Sent)
	for _, kind := range commerce.Kinds() {
		if n := summary.Kinds[kind]; n > 0 {
			fmt.Fprintf(out, "  %-12s%d\n", kind.Plural(), n)
		}
	}
	if summary.Repeated > 0 {
		fmt.Fprintf(out, "  repeated    %d (with the id of an earlier record)\n", summary.Repeated)
	}
	printRejected(out, summary)
	printLosses(out, source, summary)
	for _, kind := range commerce.Kinds() {
		if len(first[kind]) == 0 {
			continue
		}
		fmt.Fprintf(out, "\nfirst %s\n", kind.Plural())
		for _, change := range first[kind] {
			if err := printRecord(out, change.Record); err != nil {
				return err
			}
		}
	}
	return nil
}

// printLosses says what may be missed later. An export of hundreds of variants
// may share many SKUs, so that only the first are named.
func printLosses(out io.Writer, source *importer.Source, s importer.Summary) {
	const shown = 10
	if n := len(s.SharedSKUs); n > 0 {
		first := strings.Join(s.SharedSKUs[:min(n, shown)], ", ")
		if n > shown {
			first += ", …"
		}
		fmt.Fprintf(out, "several products share %s: %s\n", counted(n, "SKU"), visible(first))
	}
	if columns := source.NotImported(); len(columns) > 0 {
		fmt.Fprintf(out, "not imported: %s\n", visible(strings.Join(columns, ", ")))
	}
}

// printRecord writes the fields of a record that are neither empty nor long, and
// begins of long ones.
func printRecord(out io.Writer, record jsontext.Value) error {
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(record, &fields); err != nil {
		return fmt.Errorf("read a record: %w", err)
	}
	mark := "-"
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		const width = 100
		text := []rune(string(fields[name]))
		if len(text) > width {
			text = append(text[:width], '…')
		}
		fmt.Fprintf(out, "%s %s: %s\n", mark, name, visible(string(text)))
		mark = " "
	}
	return nil
}
