package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/lab/bench"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

func newBenchCommand() *cobra.Command {
	var cfg bench.Config
	var quick bool
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure the service on this machine", Args: cobra.NoArgs,
		Long: "Bench starts the service in a temporary folder on ports of its own, loads data, and prints\n" +
			"what it measures beside what was aimed at. Its sections:\n\n" + describeSections(bench.Sections()),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cfg.BinDir, err = tableServerFolder(); err != nil {
				return err
			}
			cfg.Out, cfg.Log = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if quick {
				cfg.Products, cfg.Orders, cfg.Duration, cfg.Rounds = 2_000, 2_000, 200*time.Millisecond, 1
			}
			return bench.Run(cmd.Context(), cfg)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Template, "template", "template.yaml", "the stack's template")
	flags.StringSliceVar(&cfg.Sections, "only", nil, "names of the sections to measure (default: all)")
	flags.IntVar(&cfg.Products, "products", 100_000, "products that the service holds")
	flags.IntVar(&cfg.Orders, "orders", 1_000_000, "orders that the index is measured with")
	flags.DurationVar(&cfg.Duration, "duration", 3*time.Second, "of each round of a load")
	flags.IntVar(&cfg.Rounds, "rounds", 3, "of each load, of which the best counts")
	flags.BoolVar(&quick, "quick", false, "with little data and for moments only, to see that everything works")
	flags.StringVar(&cfg.DataDir, "data", "", "folder that keeps the service's data for the next time (default: a temporary one)")
	flags.StringVar(&cfg.Profiles, "profiles", "", "folder for a CPU profile of each load (default: none is made)")
	cmd.AddCommand(newBenchWebhooksCommand(), newBenchChildCommand())
	return cmd
}

// tableServerFolder is where the table server is installed for the bench,
// whose data is elsewhere each time.
func tableServerFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	return filepath.Join(cache, "commerce-integration", "dynoxide-"+tableserver.Version), nil
}
