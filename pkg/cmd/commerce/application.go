package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/base/value"
)

func newApplicationCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "application", Short: "Set what the operator decides about applications", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newApplicationSetCommand())
	return cmd
}

func newApplicationSetCommand() *cobra.Command {
	var t target
	var rateLimit int
	cmd := &cobra.Command{
		Use: "set ID --rate-limit N", Short: "Set an application's rate limit, requests per 60 s", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := value.ParseID(args[0])
			switch {
			case err != nil:
				return wrongUsage("ID %s: %w", args[0], err)
			case rateLimit < 1 || rateLimit > account.MaxRateLimit:
				return wrongUsage("--rate-limit %d: must be between 1 and %d", rateLimit, account.MaxRateLimit)
			}
			table, org, err := t.openOrganization(cmd.Context())
			if err != nil {
				return err
			}
			changed, err := table.ChangeApplication(cmd.Context(), org, id, func(a *account.Application) (bool, error) {
				now := value.TimeOf(time.Now())
				object := account.AuditObject{Kind: audit.KindApplication, ID: id}
				a.ChangedBy = account.NewAuditEntry(string(audit.ApplicationUpdated), audit.Operator(), id, object, now)
				return a.SetRateLimit(rateLimit, now)
			})
			if err != nil {
				return err
			}
			if changed == nil {
				return fmt.Errorf("the organization %s has no application %s", org, id)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d requests per 60 s\n", changed.ID, changed.RateLimit)
			return err
		},
	}
	t.tableFlags(cmd)
	cmd.Flags().Var(idFlag{&t.organization}, "organization", "the organization (default: the local runner's)")
	cmd.Flags().IntVar(&rateLimit, "rate-limit", 0, fmt.Sprintf("1 to %d (required)", account.MaxRateLimit))
	_ = cmd.MarkFlagRequired("rate-limit")
	return cmd
}
