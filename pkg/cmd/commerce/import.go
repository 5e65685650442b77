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

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/importer"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/sender"
	"github.com/commerce-integration/service/pkg/sqsqueue"
	"github.com/commerce-integration/service/pkg/value"
)

// importCommand is one run of commerce import.
type importCommand struct {
	target
	format, kind, statePath string
	senderKeyPath           string
	sites                   []string
	events                  bool

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
  export     one file of commerce export; it goes into the table, not the queue

The path - is the standard input (jsonl, csv). Import checks records before it
sends them. It lists wrong ones by file and line, sends the others, and exits
with 1. The same command resumes an interrupted import after the last batch that
the queue accepted. Records are stored without events unless --events is given.
If a file holds several states of one record, give them versions: the queue does
not keep their order.

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
	f.StringVar(&c.format, "format", "", "jsonl, csv, northwind, shopify or export (default: by the paths)")
	f.StringVar(&c.kind, "kind", "", "kind of every record: product, category, order, customer or invoice")
	f.StringVar(&c.organization, "organization", "", "organization that owns the records (default: the local runner's, or the export's)")
	f.StringSliceVar(&c.sites, "site", nil, "site of the records that name none; products may have several")
	f.StringVar(&c.statePath, "state", "", "file that keeps the position (default: in the data directory)")
	f.StringVar(&c.senderKeyPath, "sender-key", "", "file with the organization's sender key, to sign the messages with")
	f.BoolVar(&c.events, "events", false, "emit events for the records")
	return cmd
}

func (c *importCommand) run(ctx context.Context, paths []string, in io.Reader, out, errOut io.Writer) error {
	if importer.Format(c.format) == exportFormat {
		return c.importExport(ctx, paths, out, errOut)
	}
	if c.table != "" {
		return errors.New("--table is for --format export: records of other formats go to a queue")
	}
	source, err := c.open(paths, in)
	if err != nil {
		return err
	}
	key, err := c.senderKey()
	if err != nil {
		return err
	}
	client, err := c.openQueue(ctx, func(f *runner.Info) string { return f.RecordsQueueURL })
	if err != nil {
		return err
	}
	if err := c.parseIDs(); err != nil {
		return err
	}
	checkpoint, state, err := c.resume(source)
	if err != nil {
		return err
	}
	if state.Rows > 0 {
		fmt.Fprintf(errOut, "going on after row %d of an interrupted import\n", state.Rows)
	}
	bar := newBar(errOut, "importing", cmp.Or(source.Size(), -1), progressbar.OptionShowBytes(true))
	batches := &batchSender{sqsqueue.New(client, c.queueURL), c.queueURL, c.organizationID.String(), key}
	summary, err := importer.Run(ctx, source.Records(), c.organizationID, batches, importer.Config{
		Events: c.events, Sites: c.siteIDs, Skip: state.Rows,
		Acknowledged: func(rows int) error {
			bar.Describe(fmt.Sprintf("%d rows", rows))
			_ = bar.Set64(source.Read())
			state.Rows = rows
			return checkpoint.Save(state)
		},
	})
	_ = bar.Finish()
	printSummary(out, summary)
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
	if summary.Refused > 0 {
		return fmt.Errorf("%d of %d records were rejected", summary.Refused, summary.Rows)
	}
	return nil
}

func (c *importCommand) open(paths []string, in io.Reader) (_ *importer.Source, err error) {
	var kind commerce.Kind
	if c.kind != "" {
		if kind, err = commerce.ParseKind(c.kind); err != nil {
			return nil, fmt.Errorf("--kind %w", err)
		}
	}
	format := importer.Format(c.format)
	if format == "" {
		if format, err = guessFormat(paths); err != nil {
			return nil, err
		}
	}
	return importer.Open(format, kind, paths, in)
}

// guessFormat goes by the first name. It cannot recognize Shopify's export, which
// is a .csv file like others.
func guessFormat(paths []string) (importer.Format, error) {
	switch extension := strings.ToLower(filepath.Ext(paths[0])); {
	case extension == ".jsonl" || extension == ".ndjson":
		return importer.JSONLines, nil
	case extension == ".csv":
		return importer.CSV, nil
	case importer.IsNorthwind(paths[0]):
		return importer.Northwind, nil
	}
	return "", fmt.Errorf("cannot tell the format of %s; give --format jsonl, csv, northwind, shopify or export", paths[0])
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
	Fingerprint string `json:"fingerprint"`
	Rows        int    `json:"rows"` // of the source that are done
}

// resume returns the checkpoint of an interrupted run of the same import: of the
// same files, for the same owner, into the same queue, in the same way. The
// standard input has none.
func (c *importCommand) resume(source *importer.Source) (checkpoint ops.Checkpoint, state importState, err error) {
	content, err := source.Fingerprint()
	if err != nil || content == "" {
		return "", state, err
	}
	fresh := importState{Fingerprint: ops.Fingerprint(content, c.organizationID, c.siteIDs, c.events, c.queueURL)}
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

// senderKey reads the key to sign with, nil without --sender-key.
func (c *importCommand) senderKey() ([]byte, error) {
	if c.senderKeyPath == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.senderKeyPath)
	if err != nil {
		return nil, fmt.Errorf("--sender-key: %w", err)
	}
	key, err := sender.ParseKey(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("--sender-key: %w", err)
	}
	return key, nil
}

// batchSender sends batches to one queue, in message groups by organization, so
// that one tenant's import does not delay another's changes.
type batchSender struct {
	queue      *sqsqueue.Queue
	url, group string
	key        []byte // signs the messages, unless it is nil
}

// Send implements [importer.Sender].
func (s *batchSender) Send(ctx context.Context, batch importer.Batch) error {
	messages := make([]sqsqueue.Message, len(batch.Messages))
	for i, body := range batch.Messages {
		messages[i] = sqsqueue.Message{Body: string(body), Group: s.group}
		if s.key != nil {
			messages[i].Attributes = map[string]string{sender.Attribute: sender.Sign(s.key, messages[i].Body)}
		}
	}
	if err := s.queue.Send(ctx, messages...); err != nil {
		return fmt.Errorf("queue %s: %w", s.url, err)
	}
	return nil
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
