package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/index/compactor"
	"github.com/commerce-integration/service/pkg/ops"
)

func newReindexCommand() *cobra.Command {
	t := &listsTarget{}
	cmd := &cobra.Command{
		Use: "reindex", Short: "Make the index of lists again from the table", Args: cobra.NoArgs,
		Long: `Reindex builds the index of lists again from the records in the table, for what
commerce verify reports. Meanwhile the lists are answered from the old index, and
changes are followed; the new index replaces it in one step.

An interrupted run ends within seconds, after the jobs under way. A list that it
had begun goes on when the command is repeated.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return unlessInterrupted(reindex(cmd.Context(), t, cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}
	t.flags(cmd)
	return cmd
}

func reindex(ctx context.Context, t *listsTarget, out, errOut io.Writer) error {
	s, err := t.open(ctx)
	if err != nil {
		return err
	}
	c := compactor.New(s.table, s.all.All(), time.Now, newLogger(errOut, slog.LevelError))
	for _, org := range s.organizations {
		if err := ops.Reindex(ctx, s.table, c, org, s.lists); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "reindexed %s\n", s)
	return err
}
