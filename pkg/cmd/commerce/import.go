package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/importer"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/pause"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// importCommand is one run of commerce import.
type importCommand struct {
	target       queueTarget
	format       string
	kind         string
	organization string
	sites        []string
	statePath    string
	events       bool

	organizationID value.ID
	siteIDs        []value.ID
}

func newImportCommand() *cobra.Command {
	c := &importCommand{}
	cmd := &cobra.Command{
		Use:   "import [flags] PATH...",
		Short: "Send records from files to the records queue",
		Long: `Import reads records from files and sends them to the records queue.

  jsonl      one ingestion record per line, {"kind","op","record","siteIds","version"};
             with --kind one plain record per line
  csv        a header of field names (billingAddress.city, items[0].sku); needs --kind
  northwind  the directory of the Northwind sample database's CSV files
  shopify    Shopify's product export, one product per variant

The path - is the standard input (jsonl, csv). Records are checked before they
are sent; what is wrong is listed by file and line, the rest is sent, and the
exit code is 1. An interrupted import goes on after the last batch that the
queue has taken when the same command is given again. Records are stored
without events unless --events is given. Give records a version where a file
holds several states of the same one: the queue does not keep their order.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.target.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&c.format, "format", "", "jsonl, csv, northwind or shopify (default: by the paths)")
	f.StringVar(&c.kind, "kind", "", "kind of every record: product, category, order, customer or invoice")
	f.StringVar(&c.organization, "organization", "", "organization that owns the records (default: the local runner's)")
	f.StringSliceVar(&c.sites, "site", nil, "site of the records that name none; products may have several")
	f.StringVar(&c.statePath, "state", "", "file that keeps the position (default: in the data directory)")
	f.BoolVar(&c.events, "events", false, "emit events for the records")
	return cmd
}

func (c *importCommand) run(ctx context.Context, paths []string, in io.Reader, out, errOut io.Writer) error {
	source, err := c.open(paths, in)
	if err != nil {
		return err
	}
	client, err := c.target.resolve(ctx, func(f *runner.Info) string { return f.RecordsQueueURL })
	if err != nil {
		return err
	}
	if err := c.parseIDs(); err != nil {
		return err
	}
	position, err := c.position(source)
	if err != nil {
		return err
	}
	if position.state.Rows > 0 {
		fmt.Fprintf(errOut, "going on after row %d of an interrupted import\n", position.state.Rows)
	}
	bar := newImportBar(source, errOut)
	sender := &queueSender{api: client, queueURL: c.target.queueURL, group: c.organizationID.String(), pause: pause.For}
	summary, err := importer.Run(ctx, source.Records(), c.organizationID, sender, importer.Config{
		Events: c.events, Sites: c.siteIDs, Skip: position.state.Rows,
		Acknowledged: func(rows int) error {
			bar.move(rows)
			return position.save(rows)
		},
	})
	bar.end()
	printSummary(out, summary)
	if err != nil {
		return position.explain(err)
	}
	if err := position.remove(); err != nil {
		return err
	}
	if summary.Refused > 0 {
		return fmt.Errorf("%d of %d records were rejected", summary.Refused, summary.Rows)
	}
	return nil
}

func (c *importCommand) open(paths []string, in io.Reader) (*importer.Source, error) {
	var kind commerce.Kind
	if c.kind != "" {
		parsed, err := commerce.ParseKind(c.kind)
		if err != nil {
			return nil, fmt.Errorf("--kind %w", err)
		}
		kind = parsed
	}
	format := importer.Format(c.format)
	if format == "" {
		guessed, err := guessFormat(paths)
		if err != nil {
			return nil, err
		}
		format = guessed
	}
	return importer.Open(format, kind, paths, in)
}

// guessFormat goes by names; Shopify's export is a .csv like any other.
func guessFormat(paths []string) (importer.Format, error) {
	switch extension := strings.ToLower(filepath.Ext(paths[0])); {
	case extension == ".jsonl" || extension == ".ndjson":
		return importer.JSONLines, nil
	case extension == ".csv":
		return importer.CSV, nil
	case importer.IsNorthwind(paths[0]):
		return importer.Northwind, nil
	}
	return "", fmt.Errorf("cannot tell the format of %s; give --format jsonl, csv, northwind or shopify", paths[0])
}

func (c *importCommand) parseIDs() error {
	if c.organization == "" {
		file, err := runner.ReadInfo(c.target.data)
		if err != nil {
			return fmt.Errorf("--organization is required: %w", err)
		}
		c.organization = file.OrganizationID
	}
	id, err := value.ParseID(c.organization)
	if err != nil {
		return fmt.Errorf("--organization %w", err)
	}
	c.organizationID = id
	for _, s := range c.sites {
		site, err := value.ParseID(s)
		if err != nil {
			return fmt.Errorf("--site %w", err)
		}
		c.siteIDs = append(c.siteIDs, site)
	}
	return nil
}

// importPosition keeps how far the import has come; without a path it keeps
// nothing.
type importPosition struct {
	path  string
	state importer.State
}

// position finds what an earlier run of the same import has done: the same
// files, for the same owner, into the same queue, in the same way.
func (c *importCommand) position(source *importer.Source) (*importPosition, error) {
	content, err := source.Fingerprint()
	if err != nil || content == "" {
		return &importPosition{}, err
	}
	h := sha256.New()
	fmt.Fprintln(h, content, c.organizationID, c.siteIDs, c.events, c.target.queueURL)
	fingerprint := hex.EncodeToString(h.Sum(nil))
	path := c.statePath
	if path == "" {
		path = filepath.Join(c.target.data, "import-"+fingerprint[:16]+".json")
	}
	state, err := importer.LoadState(path, fingerprint)
	return &importPosition{path: path, state: state}, err
}

func (p *importPosition) save(rows int) error {
	if p.path == "" {
		return nil
	}
	p.state.Rows = rows
	return p.state.Save(p.path)
}

func (p *importPosition) remove() error {
	if p.path == "" {
		return nil
	}
	return importer.RemoveState(p.path)
}

func (p *importPosition) explain(err error) error {
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	if p.path == "" || p.state.Rows == 0 {
		return err
	}
	return fmt.Errorf("%w; give the same command again to go on after row %d", err, p.state.Rows)
}

func printSummary(out io.Writer, s importer.Summary) {
	fmt.Fprintf(out, "accepted  %d\n", s.Sent)
	if s.AlreadySent > 0 {
		fmt.Fprintf(out, "before    %d (sent by the interrupted import)\n", s.AlreadySent)
	}
	fmt.Fprintf(out, "rejected  %d\n", s.Refused)
	for _, reason := range slices.Sorted(maps.Keys(s.Reasons)) {
		fmt.Fprintf(out, "  %d %s\n", s.Reasons[reason], reason)
	}
	for _, r := range s.Rejected {
		fmt.Fprintf(out, "  %s\n", r)
	}
	if more := s.Refused - len(s.Rejected); more > 0 {
		fmt.Fprintf(out, "  and %d more\n", more)
	}
}

// importBar shows how much of the files is read, on a terminal only.
type importBar struct {
	bar    *progressbar.ProgressBar
	source *importer.Source
}

func newImportBar(source *importer.Source, errOut io.Writer) *importBar {
	if !isTerminal(errOut) {
		return &importBar{}
	}
	size := source.Size()
	if size == 0 {
		size = -1
	}
	return &importBar{source: source, bar: progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(errOut), progressbar.OptionShowBytes(true), progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetDescription("importing"))}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// move is called after each batch. A bar that cannot be drawn is no reason to
// stop an import.
func (b *importBar) move(rows int) {
	if b.bar == nil {
		return
	}
	b.bar.Describe(fmt.Sprintf("%d rows", rows))
	_ = b.bar.Set64(b.source.Read())
}

func (b *importBar) end() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}
