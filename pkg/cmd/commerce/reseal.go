package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/ops"
)

// resealCommand is one run of commerce reseal.
type resealCommand struct {
	target
	secret string
	dryRun bool
}

func newResealCommand() *cobra.Command {
	c := &resealCommand{}
	cmd := &cobra.Command{
		Use: "reseal", Short: "Seal everything again under the current service key", Args: cobra.NoArgs,
		Long: `Reseal belongs to a rotation of the service key. It opens everything in the
table that is sealed under the key before and seals it under the current one:
webhook endpoints' secrets and answers that are kept for Idempotency-Key. In AWS
--secret names the key's secret, whose versions AWSCURRENT and AWSPREVIOUS are
the two keys.

It reads the whole table, half a read unit for each 4 KB, until a pass finds
nothing under an older key, and writes an item only as it was read, so that it
may run beside the service, and be interrupted and repeated. Instances of the service may seal under the key before for five minutes
after a rotation: a run within that time says when to give the command again.

--dry-run counts and changes nothing. The exit code is 0 when everything is
under the current key, 1 when something is not: give the command again before
the next rotation, which removes the key before. 2 tells that the command could
not look. What no key opens is named.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.tableFlags(cmd)
	cmd.Flags().StringVar(&c.secret, "secret", "", "ARN or name of the service key's secret in AWS, the stack's output ServiceKeySecretArn")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "count the items under an older key")
	cmd.MarkFlagsRequiredTogether("table", "secret")
	return cmd
}

func (c *resealCommand) run(ctx context.Context, out, errOut io.Writer) error {
	table, _, err := c.openTable(ctx)
	if err != nil {
		return trouble(err)
	}
	keys, created, err := c.serviceKeys(ctx)
	if err != nil {
		return trouble(err)
	}
	box, err := sealed.NewBox(keys[0], keys[1:]...)
	if err != nil {
		return trouble(err)
	}
	r := &ops.Reseal{Table: table, Box: box, Clock: time.Now, DryRun: c.dryRun, Unreadable: func(item string, err error) {
		fmt.Fprintln(errOut, visible(item)+": "+visible(err.Error()))
	}}
	counts, err := r.Run(ctx)
	if err != nil {
		return trouble(err)
	}
	return reportResealed(out, counts, created)
}

// serviceKeys returns the service keys, the current one first, and when the
// newest was made, zero for the local runner's.
func (c *resealCommand) serviceKeys(ctx context.Context) (keys [][]byte, created time.Time, err error) {
	if c.table == "" {
		keys, err = runner.ReadServiceKeys(c.data)
		return keys, created, err
	}
	cfg, err := awsConfig(ctx)
	if err != nil {
		return nil, created, err
	}
	return app.ServiceKeys(ctx, cfg, c.secret)
}

func reportResealed(out io.Writer, counts ops.ResealCounts, created time.Time) error {
	fmt.Fprintf(out, "sealed items  %d\nresealed      %d\nleft          %d\nunreadable    %d\n",
		counts.Items, counts.Resealed, counts.Left, counts.Unreadable)
	settled := created.Add(sealed.KeysMaxAge)
	switch {
	case counts.Left+counts.Unreadable > 0:
		return &exitError{exitFound, errors.New(counted(counts.Left+counts.Unreadable, "item") + " not under the current key")}
	case time.Now().Before(settled):
		return &exitError{exitFound, fmt.Errorf("instances may seal under the key before until %s: give the command again after it", settled.UTC().Format(time.RFC3339))}
	}
	return nil
}
