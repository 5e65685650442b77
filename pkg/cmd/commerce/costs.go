package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/ops"
)

// costsCommand is one run of commerce costs.
type costsCommand struct {
	target
	month string
	json  jsonFlag
}

func newCostsCommand() *cobra.Command {
	c := &costsCommand{}
	cmd := &cobra.Command{
		Use: "costs", Short: "Estimate what an organization's requests and events cost", Args: cobra.NoArgs,
		Long: `Costs reads the usage counters of the organization's applications, as
GET /developers/applications/{id}/usage does, and prices them: what API Gateway,
Lambda, DynamoDB, SQS and the logs charge for as many requests and events, on
demand in us-east-1, without free tiers and discounts. The present month counts
up to today; counters are kept for 90 days.

It is an estimate. Every request counts as a page of 20 records that no cache
has, every event as one that comes alone, and every failed event as eleven
attempts. It leaves out what the counters do not have: requests by users' tokens,
applications that were deleted, records that were stored and their index,
imports, storage, backups, transfer, and what is there without any use (alarms,
metrics, secrets). AWS's bill says what everything together did cost.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return unlessInterrupted(c.run(cmd.Context(), cmd.OutOrStdout()))
		},
	}
	c.tableFlags(cmd)
	flags := cmd.Flags()
	c.organizationFlag(cmd)
	flags.StringVar(&c.month, "month", time.Now().UTC().Format("2006-01"), "the month, of UTC")
	c.json.flag(cmd)
	return cmd
}

func (c *costsCommand) run(ctx context.Context, out io.Writer) error {
	table, org, err := c.openOrganization(ctx)
	if err != nil {
		return err
	}
	costs, err := ops.EstimateCosts(ctx, table, org, c.month, time.Now())
	if err != nil {
		return err
	}
	return c.json.print(out, costs, func() error { return printCosts(out, costs) })
}

func printCosts(out io.Writer, costs *ops.Costs) error {
	rows := [][]string{{"SERVICE", "FOR", "UNITS", "OF", "DOLLARS"}}
	for _, line := range costs.Lines {
		rows = append(rows, []string{line.Service, line.For, fmt.Sprintf("%.2f", line.Units), line.Unit, fmt.Sprintf("%.4f", line.Dollars)})
	}
	if err := writeTable(out, rows); err != nil {
		return err
	}
	u := &costs.Usage
	_, err := fmt.Fprintf(out, asCalled("%s to %s: %d requests, %d events (%d delivered, %d failed) of %s\nabout $%.4f at the prices of %s, an estimate: commerce costs --help\n"),
		costs.From, costs.To, u.Requests, u.Events, u.Delivered, u.Failed, counted(costs.Applications, "application"), costs.Dollars, costs.Prices)
	return err
}
