package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/lab/bench"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

// benchOptions are the flags of one bench command.
type benchOptions struct {
	bench.Config
	quick    bool
	markdown string
}

func (o *benchOptions) addFlags(cmd *cobra.Command, duration time.Duration, defaultSections string) {
	flags := cmd.Flags()
	flags.StringVar(&o.Template, "template", "template.yaml", "the stack's template")
	flags.StringSliceVar(&o.Sections, "only", nil, "names of the sections to measure (default: "+defaultSections+")")
	flags.IntVar(&o.Rounds, "rounds", 3, "of each load")
	flags.DurationVar(&o.Duration, "duration", duration, "of each round of requests, and for which latency is measured")
	flags.BoolVar(&o.quick, "quick", false, "with little data and for moments only, to see that everything works")
	flags.StringVar(&o.Profiles, "profiles", "", "folder for CPU profiles of this process, labelled by function (default: none is made)")
	flags.StringVar(&o.markdown, "markdown", "", "file to which the report is added as a section of Markdown")
}

// run measures the sections, the first of them when no flag names any.
func (o *benchOptions) run(cmd *cobra.Command, sections []bench.Section, first int) (err error) {
	if o.BinDir, err = tableserver.CacheDir(); err != nil {
		return err
	}
	if len(o.Sections) == 0 {
		for _, s := range sections[:first] {
			o.Sections = append(o.Sections, s.Name)
		}
	}
	o.Out, o.Log = cmd.OutOrStdout(), cmd.ErrOrStderr()
	if o.markdown != "" {
		file, err := os.OpenFile(o.markdown, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		fmt.Fprintf(file, "## `lab %s`\n\n", strings.Join(os.Args[1:], " "))
		defer fmt.Fprintln(file)
		o.Out = io.MultiWriter(o.Out, file)
	}
	return bench.Run(cmd.Context(), sections, o.Config)
}

func newBenchCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure the service on this machine", Args: cobra.NoArgs,
		Long: "Bench starts the service in a temporary folder on ports of its own, loads data, and prints\n" +
			"what it measures beside the target. Its sections, of which the last two are measured only\nwith --only:\n\n" + bench.Describe(bench.ReadSections()),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.quick {
				o.Products, o.Duration, o.Rounds, o.Quiet = 2_000, 200*time.Millisecond, 1, 0
				o.Events = 200
				o.Tenants, o.TenantProducts, o.Instances, o.Requests = 20, 2_000, 4, 500
			}
			return o.run(cmd, bench.ReadSections(), len(bench.ReadSections())-2)
		},
	}
	o.addFlags(cmd, 3*time.Second, "all but the last two")
	cmd.Flags().IntVar(&o.Products, "products", 100_000, "products that the service holds")
	cmd.Flags().DurationVar(&o.Quiet, "quiet", 45*time.Second, "without a change, after which the feed is asked again")
	cmd.Flags().IntVar(&o.Events, "events", 2_000, "delivered events that the bill is of")
	cmd.Flags().IntVar(&o.Tenants, "tenants", 20, "of the 1,000 tenants of scattered requests, those that are simulated")
	cmd.Flags().IntVar(&o.TenantProducts, "tenant-products", 10_000, "products that each of them has")
	cmd.Flags().IntVar(&o.Instances, "instances", 50, "of the 50 instances that serve them, those that are simulated")
	cmd.Flags().IntVar(&o.Requests, "requests", 3_000, "scattered requests that each figure is of")
	cmd.Flags().StringVar(&o.DataDir, "data", "", "folder that keeps the service's data for the next time (default: a temporary one)")
	cmd.AddCommand(newBenchWebhooksCommand())
	return cmd
}

func newBenchWebhooksCommand() *cobra.Command {
	var o benchOptions
	var isolation bool
	cmd := &cobra.Command{
		Use: "webhooks", Short: "Measure the delivery of webhooks on this machine", Args: cobra.NoArgs,
		Long: "Webhooks starts the service as a process of its own in a temporary folder, sends records\n" +
			"into its queue, receives the webhooks, and prints what it measures beside the target. The\n" +
			"last of its sections is measured only with --isolation or --only:\n\n" + bench.Describe(bench.WebhookSections()),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.quick {
				o.Events, o.Rounds, o.Duration, o.Waiting, o.Imported = 500, 1, 2*time.Second, 500, 2_000
				o.Stored = []int{0}
			}
			var remove func()
			if o.Program, remove, err = buildCommerce(cmd); err != nil {
				return err
			}
			defer remove()
			first := len(bench.WebhookSections())
			if !isolation {
				first--
			}
			return o.run(cmd, bench.WebhookSections(), first)
		},
	}
	o.addFlags(cmd, time.Minute, "all but the last")
	flags := cmd.Flags()
	flags.BoolVar(&isolation, "isolation", false, "all sections, the last too")
	flags.IntVar(&o.Events, "events", 10_000, "events of each round")
	flags.IntVar(&o.Rate, "rate", 100, "events a second while latency is measured")
	flags.IntSliceVar(&o.Stored, "stored", []int{0, 10_000}, "events that are stored before, for each row of latencies")
	flags.IntVar(&o.Others, "others", 20, "events a second of another organization, in the section of isolation")
	flags.IntVar(&o.Waiting, "waiting", 10_000, "events that wait for an endpoint that hangs")
	flags.IntVar(&o.Imported, "imported", 100_000, "records of an import")
	return cmd
}

// buildCommerce builds the commerce command into a temporary folder.
func buildCommerce(cmd *cobra.Command) (program string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "commerce-lab-")
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for the commerce command: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) } // in the temporary folder, which the system empties
	if program, err = workload.Build(cmd.Context(), dir); err != nil {
		remove()
	}
	return program, remove, err
}
