package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
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

An interrupted run ends within seconds, after the jobs under way. The same
command resumes it within a day.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return reindex(cmd.Context(), t, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	t.flags(cmd)
	return cmd
}

func reindex(ctx context.Context, t *listsTarget, out, errOut io.Writer) error {
	s, err := t.open(ctx)
	if err != nil {
		return unlessInterrupted(err)
	}
	position, err := t.position(s.owner, time.Now())
	if err != nil {
		return err
	}
	if org, resumed := position.Resumed(); resumed {
		fmt.Fprintf(errOut, "going on at organization %s of an interrupted run\n", org)
	}
	c := compactor.New(s.table, s.all.All(), time.Now, newLogger(errOut, slog.LevelError))
	bar := s.bar(errOut, "reindexing")
	for _, org := range s.organizations {
		if err = ops.Reindex(ctx, s.table, c, org, s.lists, position, func() { _ = bar.Add(1) }); err != nil {
			break
		}
	}
	_ = bar.Finish()
	if err != nil {
		return fmt.Errorf("%w; give the same command again to go on", unlessInterrupted(err))
	}
	if err := position.Remove(); err != nil {
		return err
	}
	return t.json.printf(out, s.result(), "reindexed %s\n", s)
}

// position returns the position of an interrupted run of the same command.
func (t *listsTarget) position(owner string, now time.Time) (*ops.ReindexPosition, error) {
	fingerprint := ops.Fingerprint(owner, os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), t.organization, t.list)
	return ops.OpenReindexPosition(t.data, fingerprint, now)
}
