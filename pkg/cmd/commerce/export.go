package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/commerce"
)

// standardOutput is the path of the standard output.
const standardOutput = "-"

// exportCommand is one run of commerce export.
type exportCommand struct {
	feedReader
	to string
}

func newExportCommand() *cobra.Command {
	c := &exportCommand{}
	cmd := &cobra.Command{
		Use: "export", Short: "Write the records of an organization to a file", Args: cobra.NoArgs,
		Long: `Export reads every record that an API key, or what commerce login was granted,
may read, by the feed of changes, and writes a line of JSON for each:
{"kind","op","record"}, as commerce import and POST /ingest/records take it. The
record is what GET answers. A record that changes meanwhile comes again, and one
that was deleted in the last 90 days comes as a delete. The sites of products and
the versions of their senders are not in the file.

The file appears when it is whole; repeat an interrupted export. It holds
personal data, so only its owner may read it. The format is jsonl to import.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.keyFlags(cmd)
	cmd.Flags().StringVar(&c.data, "data", defaultData, "data folder of the local runner")
	cmd.Flags().StringVar(&c.url, "url", "", "base URL of a service, instead of the local one")
	cmd.Flags().StringVar(&c.to, "to", "", "file to write, or - for the standard output (required)")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

func (c *exportCommand) run(ctx context.Context, out, errOut io.Writer) error {
	api, err := c.open()
	if err != nil {
		return err
	}
	counts := map[commerce.Op]int{}
	export := func(out io.Writer) error {
		return c.read(ctx, api, 0, errOut, func(change feedChange) error {
			counts[change.Op]++
			return exportLine(out, change)
		})
	}
	if c.to == standardOutput {
		err = export(out)
	} else {
		err = writeWhole(c.to, export)
	}
	if err == nil {
		fmt.Fprintf(errOut, "exported %s and %s\n", counted(counts[commerce.OpPut], "record"), counted(counts[commerce.OpDelete], "deletion"))
	}
	return unlessInterrupted(err)
}

func exportLine(out io.Writer, change feedChange) error {
	record := change.Object
	if change.Op == commerce.OpDelete {
		record = jsontext.Value(`{"id":"` + change.ID.String() + `"}`)
	}
	line, err := json.Marshal(struct {
		Kind   commerce.Kind  `json:"kind"`
		Op     commerce.Op    `json:"op"`
		Record jsontext.Value `json:"record"`
	}{change.Kind, change.Op, record})
	if err == nil {
		_, err = out.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write the export: %w", err)
	}
	return nil
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
