package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/ops/importer"
)

// importCommand is one run of commerce import.
type importCommand struct {
	target
	format, kind, statePath string
	sites                   []string
	events                  bool
	json                    jsonFlag

	mappingPath, idFrom, currency string
	refusedPath                   string
	dryRun, noWait                bool
	api                           feedReader // the service's, to see what is stored
	token                         string     // by which the service takes the records, instead of a queue

	siteIDs []value.ID
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
  jsonl        one ingestion record per line, {"kind","op","record","siteIds","version"}, as
               commerce export writes it; with --kind one plain record per line

Import finds out the format by the directory, the file's name or its header. The path -
is the standard input and needs --format. Import checks records before it sends them. It
lists wrong ones by file and line, sends the others, and exits with 1. --dry-run sends
nothing and shows what would be sent. --refused FILE has all rows of the wrong ones as
they were read, with the first reason in a further column, refused (in JSON Lines a
member), which an import leaves out: correct the rows and import the file. Rows of a file
with another header go to FILE-2 and so on, before the extension. Ids are derived, so that
the same file again changes nothing. Text in the wrong encoding is mended and named. At
the end come the columns that were not imported, and the SKUs that several products
share. Categories by type or path, and brands by name, come with products.

A mapping is a JSON file. Columns that it does not name are left out:

  {"kind": "product", "idFrom": "Art-Nr", "decimalComma": true,
   "columns": {"Art-Nr": "sku", "Name": "name", "Preis": "sellingPrice",
     "Gruppe": "category", "Marke": "brand", "Farbe": "attributes.colour"},
   "constants": {"taxRate": 19}}

category is a path such as Cups > Mugs. separator is a comma, a semicolon, a tab or a
bar; without it the header decides.

The same command resumes an interrupted import after the last batch that the queue
accepted. At the end import waits until the local service has stored all records and
lists the last; of another one, that --url and --key name beside --queue-url, only for
the last. An API key cannot send: --url needs --token or --queue-url.

Over HTTP the records go in requests that may be repeated, as fast as the token's rate
limit allows. The token needs the scope records:write. Import waits for the receipts of
each, and lists what the service itself refused with the others. A token may end before
the import does: the same command with a new one goes on.

Records are stored without events unless --events is given. If a file holds
several states of one record, give them versions: the queue does not keep their order.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.queueFlags(cmd)
	f := cmd.Flags()
	enumFlag(cmd, &c.format, "format", "format of the files (default: by the first of them)", formatNames())
	f.StringVar(&c.mappingPath, "mapping", "", "JSON file that says which field each column of a CSV file is")
	f.StringVar(&c.idFrom, "id-from", "", "column of a CSV file to derive the ids from, such as sku")
	f.StringVar(&c.currency, "currency", "", "the organization's currency, for a file with prices in several, such as EUR")
	f.BoolVar(&c.dryRun, "dry-run", false, "send nothing; show what would be sent")
	f.StringVar(&c.refusedPath, "refused", "", "file to write the refused rows to as they were read, with the first reason in a further column")
	f.BoolVar(&c.noWait, "no-wait", false, "end when all is sent, not when it is stored and listed")
	enumFlag(cmd, &c.kind, "kind", "kind of every record: product, category, order, customer or invoice", kindNames())
	f.Var(idFlag{&c.organization}, "organization", "organization that owns the records (default: the local runner's)")
	f.StringSliceVar(&c.sites, "site", nil, "site of the records that name none; products may have several")
	f.StringVar(&c.statePath, "state", "", "file that keeps the position (default: in the data directory)")
	urlFlag(cmd, &c.api.url, "url", "base URL of the service to send to with --token, or with --queue-url to wait there for the stored records (default: the local one)")
	f.StringVar(&c.api.key, "key", "", "API key of the organization at the URL (default: $"+keyVariable+")")
	f.StringVar(&c.token, "token", "", "token with the scope records:write: the service at --url gets the records over HTTP, no queue (default: $"+tokenVariable+")")
	cmd.MarkFlagsMutuallyExclusive("token", "queue-url")
	f.BoolVar(&c.events, "events", false, "emit events for the records")
	c.json.flag(cmd)
	return cmd
}

func (c *importCommand) run(ctx context.Context, paths []string, in io.Reader, out, errOut io.Writer) (err error) {
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
	defer func() { err = errors.Join(err, refused.close()) }()
	if c.siteIDs, err = parseSites("--site", c.sites); err != nil {
		return err
	}
	to, err := c.destination(ctx)
	if err != nil {
		return err
	}
	position, err := c.position(source, to.name)
	if err != nil {
		return err
	}
	before := position.State.Rows
	if before > 0 {
		fmt.Fprintf(errOut, "going on after row %d of an interrupted import\n", before)
	}
	to.run = position.State.Run
	bar := newBar(errOut, "importing", cmp.Or(source.Size(), -1), progressbar.OptionShowBytes(true))
	start := time.Now()
	summary, err := importer.Run(ctx, source.Records(), c.organization, to, importer.Config{
		Events: c.events, Sites: c.siteIDs, Skip: before, MaxMessage: to.maxMessage, Refused: refused.add, Warn: warnings.add,
		Acknowledged: func(rows int) error {
			bar.Describe(fmt.Sprintf("%d records, %.0f a second", rows, float64(rows-before)/time.Since(start).Seconds()))
			_ = bar.Set64(source.Read())
			position.State.Rows = rows
			return position.Save()
		},
	})
	_ = bar.Finish()
	warnings.end()
	if err == nil || summary.Sent+summary.AlreadySent+summary.Refused > 0 {
		report := newImportReport(source, summary, to.preview)
		err = errors.Join(err, c.json.print(out, report, func() error { return report.print(out) }))
	}
	if err = unlessInterrupted(err); err != nil {
		if rows := position.State.Rows; rows > 0 && position.Kept() {
			err = fmt.Errorf("%w; give the same command again to go on after row %d", err, rows)
		}
		return err
	}
	if err := position.Remove(); err != nil {
		return err
	}
	if summary.Sent > 0 && to.wait != nil && !c.noWait {
		if err := to.wait(ctx, errOut); err != nil {
			return err
		}
	}
	if summary.Refused > 0 {
		return fmt.Errorf("%d of %d records were rejected", summary.Refused, summary.Rows)
	}
	return nil
}

func (c *importCommand) open(paths []string, in io.Reader) (*importer.Source, error) {
	mapping, err := c.readMapping()
	if err != nil {
		return nil, err
	}
	format, kind := importer.Format(c.format), commerce.Kind(c.kind)
	switch {
	case mapping != nil && kind != "":
		return nil, wrongUsage("--mapping names the kind; leave out --kind")
	case mapping != nil:
		format, kind = importer.CSV, mapping.Kind
	case format == "":
		format, err = importer.Detect(paths[0])
	}
	if errors.Is(err, importer.ErrUnknownFormat) {
		return nil, wrongUsage("the format of %s is not known: give --format, one of %s", paths[0], strings.Join(formatNames(), ", "))
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

func formatNames() (names []string) {
	for _, format := range importer.Formats() {
		names = append(names, string(format))
	}
	return names
}

// importState is how far an import has come.
type importState struct {
	Rows int      `json:"rows"` // of the source that are done
	Run  value.ID `json:"run"`
}

// position returns that of an interrupted run of the same import: of the same
// files, for the same owner, into the same queue, in the same way. The standard
// input and a dry run have none.
func (c *importCommand) position(source *importer.Source, destination string) (*ops.Position[importState], error) {
	fresh := importState{Run: value.NewID()}
	content, err := source.Fingerprint()
	if err != nil || content == "" || c.dryRun {
		return &ops.Position[importState]{State: fresh}, err
	}
	fingerprint := ops.Fingerprint(content, c.organization, c.siteIDs, c.events, destination)
	file := cmp.Or(ops.Checkpoint(c.statePath), ops.PositionFile(c.data, "import", fingerprint))
	return ops.OpenPosition(file, fingerprint, time.Now(), time.Time{}, fresh)
}
