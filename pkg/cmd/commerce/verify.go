package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/ops"
)

func newVerifyCommand() *cobra.Command {
	return verifyCommand(ops.Verifier{Waits: []time.Duration{3 * time.Second, 7 * time.Second}, Pause: pause.For})
}

func verifyCommand(verifier ops.Verifier) *cobra.Command {
	t := &listsTarget{}
	cmd := &cobra.Command{
		Use: "verify", Short: "Compare the index of lists with the table", Args: cobra.NoArgs,
		Long: `Verify compares the index of lists with the records in the table and prints a
line for each difference. It looks at a list that differs twice more within about
ten seconds, because a change may be on its way to the index. An index that cannot
be read counts as one difference. commerce reindex repairs differences.

The exit code is 0 when nothing differs, 1 when something does, and 2 when the
comparison could not be made.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := t.open(cmd.Context())
			if err != nil {
				return trouble(err)
			}
			differences := 0
			for _, org := range s.organizations {
				for _, list := range s.lists {
					n, err := verifyList(cmd.Context(), verifier, s, org, list, cmd.OutOrStdout())
					if err != nil {
						return trouble(err)
					}
					differences += n
				}
			}
			if differences > 0 {
				return &exitError{exitFound, fmt.Errorf("%s in %s", counted(differences, "difference"), s)}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "no differences in %s\n", s)
			return err
		},
	}
	t.flags(cmd)
	return cmd
}

// verifyList prints the differences of a list and returns their number.
func verifyList(ctx context.Context, verifier ops.Verifier, s *scope, org value.ID, list *index.List, out io.Writer) (int, error) {
	differences, err := verifier.Verify(ctx, s.table, org, list)
	switch {
	case err != nil && !index.Damaged(err):
		return 0, fmt.Errorf("verify %s of organization %s: %w", list.Name, org, err)
	case err != nil:
		fmt.Fprintf(out, "%s %s cannot be read: %v\n", org, list.Name, err)
		return 1, nil
	}
	for _, d := range differences {
		fmt.Fprintf(out, "%s %s %s\n", org, list.Name, d)
	}
	return len(differences), nil
}
