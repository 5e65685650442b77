// Command lab is for those who develop the service: it measures the service on this machine, and breaks it to check what
// it promises. It needs Go and a checkout of the repository.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/lab/bench"
	"github.com/commerce-integration/service/pkg/lab/chaos"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal, a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "lab", Short: "Measure and break the Commerce Integration Service",
		SilenceUsage: true, SilenceErrors: true, CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.AddCommand(newBenchCommand(), newChaosCommand())
	return root
}

func newBenchCommand() *cobra.Command {
	cfg := bench.Config{
		Events: 10_000, Lone: 2000, Organizations: 300, Imported: 30_000, Products: 100_000, Duration: 10 * time.Second, Steady: 30 * time.Second, Rest: 3 * time.Second,
	}
	var quick bool
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure the service on this machine, as a page of Markdown", Args: cobra.NoArgs,
		Long: `Bench starts the service in temporary folders on ports of its own, sends records
and requests to it, and prints what it measures.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if quick {
				cfg.Events, cfg.Lone, cfg.Organizations, cfg.Imported, cfg.Products = 500, 200, 20, 2000, 2000
				cfg.Duration, cfg.Steady, cfg.Rest = time.Second, time.Second, time.Second
			}
			cfg.Out, cfg.Log = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return bench.Run(cmd.Context(), cfg)
		},
	}
	cmd.Flags().IntVar(&cfg.Events, "events", cfg.Events, "events of a burst")
	cmd.Flags().BoolVar(&quick, "quick", false, "with little data and for moments only, to see that everything works")
	return cmd
}

func newChaosCommand() *cobra.Command {
	var cfg chaos.Config
	cmd := &cobra.Command{
		Use: "chaos", Short: "Break the service while it delivers, and check what it promises", Args: cobra.NoArgs,
		Long: `Chaos kills processes, fails requests to the table and sets clocks apart while
endpoints fail half of the requests. Then it compares what was sent with what was
stored, listed, counted, delivered and in the feed. The exit code is 1 when a
promise is broken. It needs Linux, Go and a checkout of the repository.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Seed == 0 {
				cfg.Seed = rand.Uint64() //nolint:gosec // it need not be secret
			}
			cfg.Out = cmd.OutOrStdout()
			return chaos.Run(cmd.Context(), cfg)
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&cfg.Seed, "seed", 0, "of what goes wrong; 0 is one by chance")
	flags.IntVar(&cfg.Events, "events", 20_000, "events to send")
	flags.DurationVar(&cfg.Chaos, "chaos", 4*time.Minute, "how long everything goes wrong")
	return cmd
}
