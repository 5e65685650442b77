package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/account"
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
	var asJSON jsonFlag
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
				return a.SetRateLimit(rateLimit, value.TimeOf(time.Now()))
			})
			if err != nil {
				return err
			}
			if changed == nil {
				return fmt.Errorf("the organization %s has no application %s", org, id)
			}
			result := struct {
				ID        value.ID `json:"id"`
				Name      string   `json:"name"`
				RateLimit int      `json:"rateLimit"` // requests per 60 s
			}{changed.ID, changed.Name, changed.RateLimit}
			return asJSON.printf(cmd.OutOrStdout(), result, "%s: %d requests per 60 s\n", changed.ID, changed.RateLimit)
		},
	}
	t.tableFlags(cmd)
	t.organizationFlag(cmd)
	asJSON.flag(cmd)
	cmd.Flags().IntVar(&rateLimit, "rate-limit", 0, fmt.Sprintf("1 to %d (required)", account.MaxRateLimit))
	_ = cmd.MarkFlagRequired("rate-limit")
	return cmd
}
