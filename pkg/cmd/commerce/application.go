package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/value"
)

func newApplicationCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "application", Short: "Set what the operator decides about applications"}
	cmd.AddCommand(newApplicationSetCommand())
	return cmd
}

// ownerTarget says which organization of which table a command is about, by
// its flags.
type ownerTarget struct {
	tableTarget
	organization string
}

func (t *ownerTarget) flags(cmd *cobra.Command) {
	t.tableTarget.flags(cmd)
	cmd.Flags().StringVar(&t.organization, "organization", "", "the organization, a UUID (default: the local runner's)")
}

func (t *ownerTarget) open(ctx context.Context) (*dynamo.Table, value.ID, error) {
	table, file, err := t.connect(ctx)
	if err != nil {
		return nil, value.ID{}, err
	}
	if t.organization == "" && file != nil {
		t.organization = file.OrganizationID
	}
	org, err := value.ParseID(t.organization)
	if err != nil {
		return nil, value.ID{}, fmt.Errorf("--organization %w", err)
	}
	return table, org, nil
}

func newApplicationSetCommand() *cobra.Command {
	var target ownerTarget
	var rateLimit int
	cmd := &cobra.Command{
		Use: "set ID --rate-limit N", Short: "Set an application's rate limit, requests per 60 s", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := value.ParseID(args[0])
			if err != nil {
				return fmt.Errorf("ID %w", err)
			}
			table, org, err := target.open(cmd.Context())
			if err != nil {
				return err
			}
			changed, err := table.ChangeApplication(cmd.Context(), org, id, func(a *account.Application) (bool, error) {
				return a.SetRateLimit(rateLimit, value.TimeOf(time.Now()))
			})
			if err != nil {
				return err
			}
			if changed == nil {
				return fmt.Errorf("the organization %s has no application %s", org, id)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d requests per 60 s\n", changed.ID, changed.RateLimit)
			return nil
		},
	}
	target.flags(cmd)
	cmd.Flags().IntVar(&rateLimit, "rate-limit", 0, fmt.Sprintf("1 to %d (required)", account.MaxRateLimit))
	if err := cmd.MarkFlagRequired("rate-limit"); err != nil {
		panic(err) // the flag is declared above
	}
	return cmd
}
