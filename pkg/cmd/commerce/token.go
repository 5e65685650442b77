package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/issuer"
	"github.com/commerce-integration/service/pkg/local/runner"
)

func newTokenCommand() *cobra.Command {
	var grant issuer.Grant
	var data string
	var roles, sites []string
	cmd := &cobra.Command{
		Use: "token --organization UUID", Short: "Make a user's token for the local service", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fillGrant(&grant, roles, sites); err != nil {
				return err
			}
			issuer, err := runner.OpenIssuer(data)
			if err != nil {
				return err
			}
			token, err := issuer.Sign(grant)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
			return err
		},
	}
	flags := cmd.Flags()
	flags.Var(idFlag{&grant.OrganizationID}, "organization", "the user's organization (required)")
	flags.StringVar(&grant.Subject, "user", "", "the user's id (default: a new UUID)")
	flags.StringSliceVar(&roles, "roles", []string{string(auth.Owner)}, strings.Join(roleNames(), ", "))
	flags.StringSliceVar(&sites, "sites", nil, "limit the user to these sites, UUIDs")
	flags.DurationVar(&grant.Lifetime, "ttl", time.Hour, "how long the token is good for")
	flags.StringVar(&data, "data", defaultData, "data folder of the local runner")
	_ = cmd.MarkFlagRequired("organization")
	return cmd
}

func roleNames() (names []string) {
	for _, role := range auth.Roles() {
		names = append(names, string(role))
	}
	return names
}

func fillGrant(grant *issuer.Grant, roles, sites []string) (err error) {
	if grant.Subject == "" {
		grant.Subject = value.NewID().String()
	}
	if grant.Lifetime <= 0 {
		return wrongUsage("--ttl %s: must be positive", grant.Lifetime)
	}
	for _, text := range roles {
		role := auth.Role(strings.ToUpper(strings.TrimSpace(text)))
		if !slices.Contains(auth.Roles(), role) {
			return wrongUsage("--roles %s: must be one of %s", text, strings.Join(roleNames(), ", "))
		}
		grant.Roles = append(grant.Roles, role)
	}
	grant.SiteIDs, err = parseSites("--sites", sites)
	return err
}

// parseSites reads the site IDs of a flag.
func parseSites(flag string, texts []string) (sites []value.ID, err error) {
	for _, text := range texts {
		site, err := value.ParseID(text)
		if err != nil {
			return nil, wrongUsage("%s %s: %w", flag, text, err)
		}
		sites = append(sites, site)
	}
	return sites, nil
}
