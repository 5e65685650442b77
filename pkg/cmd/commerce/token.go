package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/local/issuer"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/value"
)

func newTokenCommand() *cobra.Command {
	var organization, user, data string
	var roles, sites []string
	var ttl time.Duration
	cmd := &cobra.Command{
		Use: "token --organization UUID", Short: "Make a user's token for the local service", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			grant, err := grantOf(organization, user, roles, sites, ttl)
			if err != nil {
				return err
			}
			issuer, err := runner.OpenIssuer(data)
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("no local service has been started in %s yet: start commerce run first", data)
			}
			if err != nil {
				return err
			}
			token, err := issuer.Sign(grant)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), token)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&organization, "organization", "", "the user's organization, a UUID (required)")
	flags.StringVar(&user, "user", "", "the user's id (default: a new UUID)")
	flags.StringSliceVar(&roles, "roles", []string{string(auth.Owner)}, "OWNER, ADMIN, DEVELOPER, VIEWER")
	flags.StringSliceVar(&sites, "sites", nil, "limit the user to these sites, UUIDs")
	flags.DurationVar(&ttl, "ttl", time.Hour, "how long the token is good for")
	flags.StringVar(&data, "data", defaultData, "data folder of the local runner")
	return cmd
}

func grantOf(organization, user string, roles, sites []string, ttl time.Duration) (issuer.Grant, error) {
	grant := issuer.Grant{Subject: user, Lifetime: ttl}
	var err error
	if organization == "" {
		return grant, errors.New("--organization is required")
	}
	if grant.OrganizationID, err = value.ParseID(organization); err != nil {
		return grant, fmt.Errorf("--organization %w", err)
	}
	if grant.Subject == "" {
		grant.Subject = value.NewID().String()
	}
	if ttl <= 0 {
		return grant, errors.New("--ttl must be positive")
	}
	for _, text := range roles {
		role := auth.Role(strings.ToUpper(strings.TrimSpace(text)))
		if !slices.Contains(knownRoles(), role) {
			return grant, fmt.Errorf("--roles %s: must be OWNER, ADMIN, DEVELOPER or VIEWER", text)
		}
		grant.Roles = append(grant.Roles, role)
	}
	for _, text := range sites {
		site, err := value.ParseID(text)
		if err != nil {
			return grant, fmt.Errorf("--sites %w", err)
		}
		grant.SiteIDs = append(grant.SiteIDs, site)
	}
	return grant, nil
}

func knownRoles() []auth.Role {
	return []auth.Role{auth.Owner, auth.Admin, auth.DeveloperRole, auth.Viewer}
}
