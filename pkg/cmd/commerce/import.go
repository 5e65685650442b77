package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/importer"
	"github.com/commerce-integration/service/pkg/ops"
)

// importCommand is one run of commerce import.
type importCommand struct {
	target
	format, kind, mappingPath, currency string
	url, token                          string // the service that takes the records, unless a queue does
	refusedPath                         string
	sites                               []string
	events, dryRun                      bool

	siteIDs []value.ID
}

func newImportCommand() *cobra.Command {
	c := &importCommand{}
	cmd := &cobra.Command{
		Use:   "import [flags] PATH...",
		Short: "Send records from files to the service",
		Long: `Import reads records from files and sends them to a service:

  the local one              commerce import FILE
  one that is deployed       commerce import --url URL --token TOKEN FILE
  one that you operate       commerce import --queue-url URL --organization UUID FILE

It takes these formats:

  shopify      Shopify's exports of products (one product per variant), inventory, orders and
               customers
  woocommerce  WooCommerce's product export, with variable products and variations
  medusa       Medusa's product export or import template; --currency where it has several
  vendure      Vendure's product import file
  csv          a header of field names (billingAddress.city, items[0].sku) and --kind, or any
               header and --mapping
  jsonl        one ingestion record per line, {"kind","op","record","siteIds","externalRef",
               "version"}, as commerce export writes it; with --kind one plain record per line

Import finds out the format by the file's name or its header, and checks records before it
sends them. It lists wrong ones by file and line, sends the others, and exits with 1.
--dry-run sends nothing and shows what would be sent. --refused FILE gets all rows of the
wrong ones, with the first reason in a further column, refused, which an import leaves out:
correct the rows and import the file. It does not get lines that cannot be read as CSV. Ids
are derived, so that the same file again changes nothing. Text that is not UTF-8 is read as Windows-1252 and named. Columns
of a shop's file that the service has no field for go into attributes or metadata; at the end
come the columns that were not imported. Categories by type or path, and brands by name, come with
products.

A mapping is a JSON file. Columns that it does not name are left out:

  {"kind": "product", "idFrom": "Art-Nr", "decimalComma": true,
   "columns": {"Art-Nr": "sku", "Name": "name", "Preis": "sellingPrice",
     "Gruppe": "category", "Marke": "brand", "Farbe": "attributes.colour"},
   "constants": {"taxRate": 19}}

category is a path such as Cups > Mugs.

The same command resumes an interrupted import after the last batch that was accepted.

The records go in requests that may be repeated, as fast as the token's rate limit allows.
The token needs the scope records:write. Import waits for the receipts of each, lists what
the service itself refused with the others, and at the end waits until the lists show the
last records. A token may end before the import does: the same command with a new one goes
on. What is sent to a queue is not waited for: commerce status shows what is left.

Records are stored without events unless --events is given. If a file holds
several states of one record, give them versions: their order is not kept.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.dataFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&c.queueURL, "queue-url", "", "URL of a queue to send to, instead of a service")
	addEnum(cmd, &c.format, "format", "format of the files (default: by the first of them)", formatNames())
	f.StringVar(&c.mappingPath, "mapping", "", "JSON file that says which field each column of a CSV file is")
	f.StringVar(&c.currency, "currency", "", "the organization's currency, for a file with prices in several, such as EUR")
	f.BoolVar(&c.dryRun, "dry-run", false, "send nothing; show what would be sent")
	f.StringVar(&c.refusedPath, "refused", "", "file for the refused rows of one file, with the first reason in a further column")
	addEnum(cmd, &c.kind, "kind", "kind of every record: product, category, order, customer, invoice or stock", kindNames())
	f.Var(idFlag{&c.organization}, "organization", "organization that owns the records, with --queue-url")
	f.StringSliceVar(&c.sites, "site", nil, "site of the products that name none, and of stock if it is one; may be several")
	f.StringVar(&c.url, "url", "", "base URL of the service to send to (default: the local one)")
	f.StringVar(&c.token, "token", "", "token with the scope records:write (default: $"+tokenVariable+")")
	f.BoolVar(&c.events, "events", false, "emit events for the records")
	cmd.MarkFlagsMutuallyExclusive("url", "queue-url")
	cmd.MarkFlagsMutuallyExclusive("token", "queue-url")
	cmd.MarkFlagsRequiredTogether("queue-url", "organization")
	return cmd
}

func (c *importCommand) run(ctx context.Context, paths []string, out, errOut io.Writer) (err error) {
	source, err := c.open(paths)
	if err != nil {
		return err
	}
	refused, err := createRefused(c.refusedPath, paths)
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
	warnings := &warnings{out: errOut}
	source.Warn = warnings.add
	summary, err := c.send(ctx, source, to, errOut, importer.Config{
		Events: c.events, Sites: c.siteIDs, MaxMessage: to.maxMessage, Refused: refused.add, Warn: warnings.add,
	})
	warnings.end()
	if err == nil || summary.Sent+summary.AlreadySent+summary.Refused > 0 {
		report(out, source, summary, to.first)
	}
	if err == nil && summary.Sent > 0 && to.wait != nil {
		err = to.wait(ctx, errOut)
	}
	if err == nil && summary.Refused > 0 {
		err = fmt.Errorf("%d of %d records were rejected", summary.Refused, summary.Rows)
	}
	return err
}

// send sends what an interrupted run of the same import has left.
func (c *importCommand) send(ctx context.Context, source *importer.Source, to *destination, errOut io.Writer, cfg importer.Config) (importer.Summary, error) {
	position, err := c.position(source, to)
	if err != nil {
		return importer.Summary{}, err
	}
	if cfg.Skip = position.Rows; cfg.Skip > 0 {
		fmt.Fprintf(errOut, "going on after row %d of an interrupted import\n", cfg.Skip)
	}
	to.run = position.Run
	told := time.Now()
	cfg.Acknowledged = func(rows int) error {
		if now := time.Now(); now.Sub(told) > progressPause {
			fmt.Fprintf(errOut, "%d rows done\n", rows)
			told = now
		}
		position.Rows = rows
		return position.file.Save(position)
	}
	summary, err := importer.Run(ctx, source.Records(), to.organization, to, cfg)
	switch err = unlessInterrupted(err); {
	case err == nil:
		return summary, position.file.Remove()
	case position.Rows > 0 && position.file != "":
		err = fmt.Errorf("%w; give the same command again to go on after row %d", err, position.Rows)
	}
	return summary, err
}

// progressPause is the time between two lines that say how far an import is.
const progressPause = 10 * time.Second

func (c *importCommand) open(paths []string) (*importer.Source, error) {
	mapping, err := c.readMapping()
	if err != nil {
		return nil, err
	}
	format, kind := importer.Format(c.format), commerce.Kind(c.kind)
	if mapping != nil && kind != "" {
		return nil, wrongUsage("--mapping names the kind; leave out --kind")
	}
	if mapping != nil {
		format, kind = importer.CSV, mapping.Kind
	}
	source, err := importer.Open(format, kind, paths)
	if err != nil {
		return nil, err
	}
	source.Mapping, source.Currency = mapping, c.currency
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

// importPosition is how far an import has come.
type importPosition struct {
	Rows int      `json:"rows"` // of the source that are done
	Run  value.ID `json:"run"`  // under which its requests are repeated

	file ops.Checkpoint
}

// position returns that of an interrupted run of the same import: of the same
// files, for the same owner, into the same service, in the same way. The standard
// input and a dry run have none.
func (c *importCommand) position(source *importer.Source, to *destination) (*importPosition, error) {
	p := &importPosition{Run: value.NewID()}
	content, err := source.Fingerprint()
	if err != nil || content == "" || c.dryRun {
		return p, err
	}
	p.file = ops.CheckpointOf(c.data, "import", content, to.organization, c.siteIDs, c.events, to.name)
	return p, p.file.Load(p)
}
