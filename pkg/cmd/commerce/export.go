package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/ops/importer"
)

func newExportCommand() *cobra.Command {
	t, to, asJSON := &target{}, "", jsonFlag(false)
	cmd := &cobra.Command{
		Use: "export", Short: "Write the records of an organization to a file", Args: cobra.NoArgs,
		Long: `Export writes all records of an organization to a file: products, categories,
orders, customers and invoices as they are stored, byte for byte, with revision,
version and sites, and the tombstones of deleted ones, which are kept for 90 days.
Applications, API keys, endpoints, webhook history and usage are left out: their
secrets are sealed by the key of their deployment.

The file is text: a line that names the format, its version and the organization,
a line of JSON per record, and a line with counts and a checksum. Equal records
give equal files. Each record is as it was when it was read; stop the senders to
have all as of one time. The file appears when it is whole; repeat an interrupted
export from the start. It holds personal data, so only its owner may read it.
commerce import --format export reads it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch info, err := os.Stat(to); {
			case to == importer.Stdin && bool(asJSON):
				return wrongUsage("--json goes with --to FILE: the standard output gets the records")
			case err == nil && info.IsDir():
				return wrongUsage("--to %s: it is a directory; name a file", to)
			}
			return export(cmd.Context(), t, to, asJSON, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	t.tableFlags(cmd)
	t.organizationFlag(cmd)
	cmd.Flags().StringVar(&to, "to", "", "file to write, or - for the standard output (required)")
	asJSON.flag(cmd)
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

func export(ctx context.Context, t *target, to string, asJSON jsonFlag, out, errOut io.Writer) (err error) {
	table, org, err := t.openOrganization(ctx)
	if err != nil {
		return err
	}
	result := struct {
		OrganizationID value.ID `json:"organizationId"`
		Records        int      `json:"records"`
		Tombstones     int      `json:"tombstones"`
	}{OrganizationID: org}
	write := func(out io.Writer) (err error) {
		bar := newBar(errOut, "exporting", -1)
		defer func() { _ = bar.Finish() }()
		result.Records, result.Tombstones, err = ops.Export(ctx, table, org, out, func(written int) { _ = bar.Set(written) })
		return unlessInterrupted(err)
	}
	if to == importer.Stdin {
		err = write(out)
	} else {
		err = writeWhole(to, write)
	}
	if err != nil {
		return err
	}
	return asJSON.print(out, result, func() error {
		_, err := fmt.Fprintf(errOut, "exported %s and %s of organization %s\n", counted(result.Records, "record"), counted(result.Tombstones, "tombstone"), org)
		return err
	})
}

// writeWhole writes a file that only its owner may read, and that appears under
// its name when it is whole.
func writeWhole(path string, write func(io.Writer) error) (err error) {
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the export: %w", err)
	}
	buffered := bufio.NewWriterSize(f, 1<<20)
	err = write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

// exportFormat is the format of commerce export's files. They go into the table
// without the queue, so that the importer of other formats does not know it.
const exportFormat importer.Format = "export"

// importExport imports a file of commerce export.
func (c *importCommand) importExport(ctx context.Context, paths []string, out, errOut io.Writer) error {
	switch {
	case len(paths) != 1 || paths[0] == importer.Stdin:
		return wrongUsage("--format export takes one file, which it reads twice")
	case c.kind != "" || len(c.sites) > 0 || c.queueURL != "" || c.endpoint != "" || c.statePath != "":
		return wrongUsage("--format export takes none of --kind, --site, --queue-url, --endpoint and --state: the file says the kinds and sites, and goes into the table")
	}
	f, err := os.Open(paths[0])
	if err != nil {
		return fmt.Errorf("open the export: %w", err)
	}
	defer f.Close()
	lines := 0
	org, err := ops.ReadExport(f, func(*commerce.Stored) error {
		lines++
		return ctx.Err()
	})
	if err != nil {
		return fmt.Errorf("%s: %w; nothing was imported", paths[0], unlessInterrupted(err))
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the export again: %w", err)
	}
	table, _, err := c.openTable(ctx)
	if err != nil {
		return err
	}
	into := org
	if c.organization != "" {
		if into, err = value.ParseID(c.organization); err != nil {
			return fmt.Errorf("--organization %w", err)
		}
	}
	bar := newBar(errOut, "importing", int64(max(lines, 1)), progressbar.OptionShowCount())
	run := &ops.Import{Table: table, Organization: into, Events: c.events, Progress: func(read int) { _ = bar.Set(read) }, Now: time.Now}
	summary, err := run.Run(ctx, f)
	_ = bar.Finish()
	err = errors.Join(err, c.json.print(out, summary, func() error {
		_, err := fmt.Fprintf(out, "stored   %d\nsame     %d\nnewer    %d\nexpired  %d\n", summary.Stored, summary.Same, summary.Newer, summary.Expired)
		return err
	}))
	if err != nil {
		return fmt.Errorf("%w; give the same command again to go on", unlessInterrupted(err))
	}
	return nil
}
