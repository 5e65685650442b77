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
			return verify(cmd.Context(), t, verifier, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	t.flags(cmd)
	return cmd
}

func verify(ctx context.Context, t *listsTarget, verifier ops.Verifier, out, errOut io.Writer) error {
	s, err := t.open(ctx)
	if err != nil {
		return trouble(err)
	}
	bar := s.bar(errOut, "verifying")
	defer func() { _ = bar.Finish() }()
	result := verifyResult{scopeResult: s.result(), Differences: []listDifference{}}
	found := func(org value.ID, list *index.List, d *ops.Difference, message string) {
		result.Differences = append(result.Differences, listDifference{org, list.Name, d, message})
		if !t.json {
			fmt.Fprintf(out, "%s %s %s\n", org, list.Name, message)
		}
	}
	for _, org := range s.organizations {
		for _, list := range s.lists {
			differences, err := verifier.Verify(ctx, s.table, org, list)
			switch {
			case err != nil && !index.Damaged(err):
				return trouble(fmt.Errorf("verify %s of organization %s: %w", list.Name, org, err))
			case err != nil:
				found(org, list, nil, fmt.Sprintf("cannot be read: %v", err))
				continue
			}
			for _, d := range differences {
				found(org, list, &d, d.String())
			}
			_ = bar.Add(1)
		}
	}
	if t.json {
		if err := writeJSON(out, result); err != nil {
			return trouble(err)
		}
	}
	if n := len(result.Differences); n > 0 {
		return &exitError{exitFound, fmt.Errorf("%s in %s", counted(n, "difference"), s)}
	}
	if !t.json {
		fmt.Fprintf(out, "no differences in %s\n", s)
	}
	return nil
}

// verifyResult is what commerce verify prints as JSON.
type verifyResult struct {
	scopeResult `json:",embed"`
	Differences []listDifference `json:"differences"`
}

type listDifference struct {
	OrganizationID value.ID        `json:"organizationId"`
	List           string          `json:"list"`
	Difference     *ops.Difference `json:",embed"` // nil of a list that cannot be read
	Message        string          `json:"message"`
}
