package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/lab/bench"
)

func newBenchWebhooksCommand() *cobra.Command {
	var cfg bench.WebhooksConfig
	var quick, isolation bool
	cmd := &cobra.Command{
		Use: "webhooks", Short: "Measure the delivery of webhooks on this machine", Args: cobra.NoArgs,
		Long: "Webhooks starts the service as a process of its own in a temporary folder, sends records\n" +
			"into its queue, receives the webhooks, and prints what it measures beside what was aimed\n" +
			"at. Its sections, of which the last is measured with --isolation only:\n\n" + describeSections(bench.WebhooksSections()),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cfg.BinDir, err = tableServerFolder(); err != nil {
				return err
			}
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			cfg.Child = []string{program, "bench", childName}
			cfg.Out, cfg.Log = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if quick {
				cfg.Events, cfg.Rounds, cfg.Duration, cfg.Waiting, cfg.Imported = 500, 1, 2*time.Second, 500, 2_000
			}
			if len(cfg.Sections) == 0 && !isolation {
				for _, s := range bench.WebhooksSections()[:len(bench.WebhooksSections())-1] {
					cfg.Sections = append(cfg.Sections, s[0])
				}
			}
			return bench.RunWebhooks(cmd.Context(), cfg)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Template, "template", "template.yaml", "the stack's template")
	flags.StringSliceVar(&cfg.Sections, "only", nil, "names of the sections to measure (default: all but the last)")
	flags.BoolVar(&isolation, "isolation", false, "all sections, the last too")
	flags.IntVar(&cfg.Events, "events", 10_000, "events of each round")
	flags.IntVar(&cfg.Rounds, "rounds", 3, "of each load")
	flags.IntVar(&cfg.Rate, "rate", 100, "events a second while latency is measured")
	flags.DurationVar(&cfg.Duration, "duration", time.Minute, "for which latency is measured")
	flags.IntVar(&cfg.Others, "others", 20, "events a second of another organization, in the section of isolation")
	flags.IntVar(&cfg.Waiting, "waiting", 10_000, "events that wait for an endpoint that hangs")
	flags.IntVar(&cfg.Imported, "imported", 100_000, "records of an import")
	flags.BoolVar(&quick, "quick", false, "with few events and for moments only, to see that everything works")
	flags.StringVar(&cfg.Profiles, "profiles", "", "folder for CPU profiles of the processes that are measured, labelled by function (default: none is made)")
	return cmd
}

// childName is the command that the bench starts itself.
const childName = "child"

// newBenchChildCommand makes the processes that the bench measures.
func newBenchChildCommand() *cobra.Command {
	return &cobra.Command{
		Use: childName, Short: "Do what the bench says on the standard input", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.Child(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}

// describeSections lists sections for a help.
func describeSections(sections [][2]string) string {
	var b strings.Builder
	for _, s := range sections {
		fmt.Fprintf(&b, "  %-10s %s\n", s[0], s[1])
	}
	return b.String()
}
