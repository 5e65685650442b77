package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/ops/importer"
	"github.com/commerce-integration/service/pkg/queue"
)

// importCommand is one run of commerce import.
type importCommand struct {
	target
	format, kind, statePath string
	signer                  signer
	sites                   []string
	events                  bool
	json                    jsonFlag

	mappingPath, idFrom, currency string
	refusedPath                   string
	dryRun, noWait                bool
	api                           feedReader // the service's, to see what is stored
	token                         string     // by which the service takes the records, instead of a queue

	organizationID value.ID
	siteIDs        []value.ID
}

func newImportCommand() *cobra.Command {
	c := &importCommand{}
	cmd := &cobra.Command{
		Use:   "import [flags] PATH...",
		Short: "Send records from files to the service",
		Long: `Import reads records from files and sends them to a service:

  the local one              commerce import FILE
  one that is deployed       commerce import --url URL --token TOKEN FILE, over HTTP
  one that you operate       commerce import --queue-url URL --organization UUID FILE

It takes these formats:

  shopify      Shopify's exports of products (one product per variant), orders and customers
  woocommerce  WooCommerce's product export, with variable products and variations
  medusa       Medusa's product export or import template; --currency where it has several
  vendure      Vendure's product import file
  northwind    the directory of the Northwind sample database's CSV files
  csv          a header of field names (billingAddress.city, items[0].sku) and --kind, or any
               header and --mapping; --id-from names a column to derive the id from
  jsonl        one ingestion record per line, {"kind","op","record","siteIds","version"};
               with --kind one plain record per line
  export       one file of commerce export; it goes into the table, not the queue

The format is told by the directory, the file's name or its header. The path - is the
standard input and needs --format. Import checks records before it sends them. It
lists wrong ones by file and line, sends the others, and exits with 1. --dry-run sends
nothing and shows what would be sent. --refused FILE has all rows of the wrong ones as
they were read, with the reasons in a further column, refused (in JSON Lines a member),
which an import leaves out: correct the rows and import the file. Rows of a file with
another header go to FILE-2 and so on, before the extension. Ids are
derived, so that the same file again changes nothing. Text in the wrong encoding is
mended and named. At the end come the columns that were not imported, and the SKUs that
several products share. Categories by type or path, and brands by name, come with products.

A mapping is a JSON file. Columns that it does not name are left out:

  {"kind": "product", "idFrom": "Art-Nr", "decimalComma": true,
   "columns": {"Art-Nr": "sku", "Name": "name", "Preis": "sellingPrice",
     "Gruppe": "category", "Marke": "brand", "Farbe": "attributes.colour"},
   "constants": {"taxRate": 19}}

category is a path such as Cups > Mugs. separator is told by the header unless it
is given: a comma, a semicolon, a tab or a bar.

The same command resumes an interrupted import after the last batch that the queue
accepted. At the end import waits until the local service has stored all records and
lists the last; of another one, that --url and --key name beside --queue-url, only for
the last. An API key cannot send: --url needs --token or --queue-url.

Over HTTP the records go in requests that may be repeated, as fast as the token's rate
limit allows. The token needs the scope records:write. Import waits for the receipts of
each, and lists what the service itself refused with the others. A token may end before
the import does: the same command with a new one goes on.

Records are stored without events unless --events is given. If a file holds
several states of one record, give them versions: the queue does not keep their order.

An export is checked as a whole before anything is stored. Its records keep their
bytes, revisions, versions and sites. They go to the organization of the export,
or to the one that --organization names, whose id then takes the place of theirs.
A record that the table has in a later state stays (newer), so that the same
command, given again, changes nothing. Imported changes reach the lists by the
stream, as all do.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.queueFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&c.table, "table", "", "name of a table in AWS, instead of the local runner's; for --format export")
	f.StringVar(&c.format, "format", "", "format of the files (default: by the first of them)")
	f.StringVar(&c.mappingPath, "mapping", "", "JSON file that says which field each column of a CSV file is")
	f.StringVar(&c.idFrom, "id-from", "", "column of a CSV file to derive the ids from, such as sku")
	f.StringVar(&c.currency, "currency", "", "the organization's currency, for a file with prices in several, such as EUR")
	f.BoolVar(&c.dryRun, "dry-run", false, "send nothing; show what would be sent")
	f.StringVar(&c.refusedPath, "refused", "", "file to write the refused rows to as they were read, with the reasons in a further column")
	f.BoolVar(&c.noWait, "no-wait", false, "end when all is sent, not when it is stored and listed")
	f.StringVar(&c.kind, "kind", "", "kind of every record: product, category, order, customer or invoice")
	f.StringVar(&c.organization, "organization", "", "organization that owns the records (default: the local runner's, or the export's)")
	f.StringSliceVar(&c.sites, "site", nil, "site of the records that name none; products may have several")
	f.StringVar(&c.statePath, "state", "", "file that keeps the position (default: in the data directory)")
	c.signer.flag(cmd)
	f.StringVar(&c.api.url, "url", "", "base URL of the service to send to with --token, or with --queue-url to see there what is stored (default: the local one)")
	f.StringVar(&c.api.key, "key", "", "API key of the organization at the URL (default: $"+keyVariable+")")
	f.StringVar(&c.token, "token", "", "token with the scope records:write: the service at --url gets the records over HTTP, no queue (default: $"+tokenVariable+")")
	cmd.MarkFlagsMutuallyExclusive("token", "queue-url")
	f.BoolVar(&c.events, "events", false, "emit events for the records")
	c.json.flag(cmd)
	return cmd
}

func (c *importCommand) run(ctx context.Context, paths []string, in io.Reader, out, errOut io.Writer) error {
	if importer.Format(c.format) == exportFormat {
		return c.importExport(ctx, paths, out, errOut)
	}
	if c.table != "" {
		return wrongUsage("--table is for --format export: records of other formats go to a queue")
	}
	source, err := c.open(paths, in)
	if err != nil {
		return err
	}
	warnings := &warnings{out: errOut}
	source.Warn = warnings.add
	refused, err := createRefused(c.refusedPath)
	if err != nil {
		return err
	}
	if c.dryRun {
		err = c.preview(ctx, source, refused, warnings, out)
	} else {
		err = c.send(ctx, source, refused, warnings, out, errOut)
	}
	return errors.Join(err, refused.close())
}

func (c *importCommand) send(ctx context.Context, source *importer.Source, refused *refusedRows, warnings *warnings, out, errOut io.Writer) error {
	open := c.queue
	if c.overHTTP() {
		open = c.service
	}
	to, err := open(ctx)
	if err != nil {
		return err
	}
	if err := c.parseIDs(); err != nil {
		return err
	}
	checkpoint, state, err := c.resume(source, to.name)
	if err != nil {
		return err
	}
	if state.Rows > 0 {
		fmt.Fprintf(errOut, "going on after row %d of an interrupted import\n", state.Rows)
	}
	bar := newBar(errOut, "importing", cmp.Or(source.Size(), -1), progressbar.OptionShowBytes(true))
	batches := &lastSent{Sender: to.sender(state.Run)}
	start := time.Now()
	summary, err := importer.Run(ctx, source.Records(), c.organizationID, batches, importer.Config{
		Events: c.events, Sites: c.siteIDs, Skip: state.Rows, MaxMessage: to.maxMessage, Refused: refused.add, Warn: warnings.add,
		Acknowledged: func(rows int) error {
			bar.Describe(fmt.Sprintf("%d records, %.0f a second", rows, float64(rows-state.Rows)/time.Since(start).Seconds()))
			_ = bar.Set64(source.Read())
			state.Rows = rows
			return checkpoint.Save(state)
		},
	})
	_ = bar.Finish()
	warnings.end()
	if err == nil || summary.Sent+summary.AlreadySent+summary.Refused > 0 {
		err = errors.Join(err, c.json.print(out, c.result(source, summary), func() error {
			printSummary(out, summary)
			printLosses(out, source, summary)
			return nil
		}))
	}
	if err != nil {
		err = unlessInterrupted(err)
		if checkpoint == "" || state.Rows == 0 {
			return err
		}
		return fmt.Errorf("%w; give the same command again to go on after row %d", err, state.Rows)
	}
	if err := checkpoint.Remove(); err != nil {
		return err
	}
	if summary.Sent > 0 && !c.noWait {
		if err := to.wait(ctx, batches.batch, errOut); err != nil {
			return err
		}
	}
	return refusedError(summary)
}

// destination is where an import sends records.
type destination struct {
	name       string // its URL
	maxMessage int    // bytes; 0: what a queue takes
	sender     func(run value.ID) importer.Sender
	wait       func(ctx context.Context, last importer.Batch, errOut io.Writer) error // until the records are stored
}

// queue is the destination of an import by SQS.
func (c *importCommand) queue(ctx context.Context) (*destination, error) {
	if c.api.url != "" && c.queueURL == "" {
		return nil, wrongUsage("--url: the service there takes records with --token (or $%s), not with --key; or name its queue with --queue-url", tokenVariable)
	}
	if err := c.signer.read(); err != nil {
		return nil, err
	}
	client, err := c.openQueue(ctx, func(f *runner.Info) string { return f.RecordsQueueURL })
	if err != nil {
		return nil, err
	}
	return &destination{
		name: c.queueURL,
		sender: func(value.ID) importer.Sender {
			return &batchSender{queue: queue.New(client, c.queueURL), url: c.queueURL, organization: c.organizationID, signer: &c.signer}
		},
		wait: func(ctx context.Context, last importer.Batch, errOut io.Writer) error {
			return c.wait(ctx, client, last, errOut)
		},
	}, nil
}

// lastSent remembers the last batch.
type lastSent struct {
	importer.Sender
	batch importer.Batch
}

// Send implements [importer.Sender].
func (l *lastSent) Send(ctx context.Context, batch importer.Batch) ([]importer.Refused, error) {
	l.batch = batch
	return l.Sender.Send(ctx, batch)
}

func refusedError(s importer.Summary) error {
	if s.Refused == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d records were rejected", s.Refused, s.Rows)
}

func (c *importCommand) open(paths []string, in io.Reader) (*importer.Source, error) {
	mapping, err := c.readMapping()
	if err != nil {
		return nil, err
	}
	var kind commerce.Kind
	if c.kind != "" {
		if kind, err = commerce.ParseKind(c.kind); err != nil {
			return nil, fmt.Errorf("--kind %w", err)
		}
	}
	format := importer.Format(c.format)
	switch {
	case mapping != nil && kind != "":
		return nil, wrongUsage("--mapping names the kind; leave out --kind")
	case mapping != nil:
		format, kind = importer.CSV, mapping.Kind
	case format == "":
		format, err = importer.Detect(paths[0])
	}
	if errors.Is(err, importer.ErrUnknownFormat) {
		return nil, wrongUsage("the format of %s is not known: give --format, one of %s", paths[0], strings.Join(flagValues("format"), ", "))
	}
	if err != nil {
		return nil, err
	}
	source, err := importer.Open(format, kind, paths, in)
	switch {
	case errors.Is(err, importer.ErrNoKind):
		return nil, wrongUsage("%s has the header of no known shop system: give --kind if its columns are named as fields, or --mapping", paths[0])
	case err != nil:
		return nil, err
	case c.idFrom != "" && format != importer.CSV:
		return nil, wrongUsage("--id-from is for format csv: format %s derives its ids itself", format)
	}
	source.Mapping, source.IDFrom, source.Currency = mapping, c.idFrom, c.currency
	return source, nil
}

func (c *importCommand) readMapping() (*importer.Mapping, error) {
	if c.mappingPath == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.mappingPath)
	if err != nil {
		return nil, fmt.Errorf("--mapping: %w", err)
	}
	mapping, err := importer.ParseMapping(text)
	if err != nil {
		return nil, fmt.Errorf("--mapping %s: %w", c.mappingPath, err)
	}
	return mapping, nil
}

func (c *importCommand) parseIDs() error {
	if c.organization == "" {
		file, err := runner.ReadInfo(c.data)
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
	c.siteIDs, err = parseSites("--site", c.sites)
	return err
}

// importState is the checkpoint of an import.
type importState struct {
	Fingerprint string   `json:"fingerprint"`
	Rows        int      `json:"rows"` // of the source that are done
	Run         value.ID `json:"run"`
}

// resume returns the checkpoint of an interrupted run of the same import: of the
// same files, for the same owner, into the same queue, in the same way. The
// standard input has none.
func (c *importCommand) resume(source *importer.Source, destination string) (checkpoint ops.Checkpoint, state importState, err error) {
	fresh := importState{Run: value.NewID()}
	content, err := source.Fingerprint()
	if err != nil || content == "" {
		return "", fresh, err
	}
	fresh.Fingerprint = ops.Fingerprint(content, c.organizationID, c.siteIDs, c.events, destination)
	path := c.statePath
	if path == "" {
		path = filepath.Join(c.data, "import-"+fresh.Fingerprint[:16]+".json")
	}
	checkpoint, state = ops.Checkpoint(path), fresh
	if err := checkpoint.Load(&state); err != nil || state.Fingerprint != fresh.Fingerprint {
		return checkpoint, fresh, err
	}
	return checkpoint, state, nil
}

// batchSender sends batches to one queue.
type batchSender struct {
	queue        *queue.Queue
	url          string
	organization value.ID
	signer       *signer
}

// Send implements [importer.Sender].
func (s *batchSender) Send(ctx context.Context, batch importer.Batch) ([]importer.Refused, error) {
	messages := make([]queue.Message, len(batch.Messages))
	for i, body := range batch.Messages {
		messages[i] = s.signer.message(body, s.organization)
	}
	if err := s.queue.Send(ctx, messages...); err != nil {
		return nil, fmt.Errorf("queue %s: %w", s.url, err)
	}
	return nil, nil
}

func printSummary(out io.Writer, s importer.Summary) {
	fmt.Fprintf(out, "accepted  %d\n", s.Sent)
	if s.AlreadySent > 0 {
		fmt.Fprintf(out, "before    %d (sent by the interrupted import)\n", s.AlreadySent)
	}
	printRejected(out, s)
}

func printRejected(out io.Writer, s importer.Summary) {
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
