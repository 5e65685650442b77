// Command lab is for those who develop the service: it measures the service on this machine, and breaks it to check what
// it promises. It needs Go and a checkout of the repository.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
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

// pageHead begins the page of results.
const pageHead = `# Measured

` + "`make measured`" + ` writes this page in about ten minutes. Everything runs on one machine, the client, the receivers and
what stands in for AWS too. The machine's speed varies by half from day to day: compare what was measured together.
` + "`go test -bench`" + ` measures single packages.

`

func newBenchCommand() *cobra.Command {
	cfg := bench.Config{
		Events: 10_000, Rate: 100, Paced: 20 * time.Second, Organizations: 300, Products: 100_000, Duration: 10 * time.Second, Rest: 3 * time.Second,
	}
	var quick bool
	var page string
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure the service on this machine", Args: cobra.NoArgs,
		Long: `Bench starts the service in temporary folders on ports of its own, sends records
and requests to it, and prints what it measures.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if quick {
				cfg.Events, cfg.Paced, cfg.Organizations, cfg.Products = 500, 2*time.Second, 20, 2000
				cfg.Duration, cfg.Rest = time.Second, time.Second
			}
			cfg.Out, cfg.Log = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if page == "" {
				return bench.Run(cmd.Context(), cfg)
			}
			file, err := os.Create(page)
			if err != nil {
				return fmt.Errorf("write the page: %w", err)
			}
			fmt.Fprintf(file, "%s`lab %s` on ", pageHead, strings.Join(os.Args[1:], " "))
			cfg.Out = io.MultiWriter(cfg.Out, file)
			return errors.Join(bench.Run(cmd.Context(), cfg), file.Close())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&quick, "quick", false, "with little data and for moments only, to see that everything works")
	flags.StringVar(&page, "page", "", "file that gets the report as a page of Markdown")
	return cmd
}

func newChaosCommand() *cobra.Command {
	var cfg chaos.Config
	cmd := &cobra.Command{
		Use: "chaos", Short: "Break the service while it delivers, and check what it promises", Args: cobra.NoArgs,
		Long: `Chaos runs the whole service in a temporary folder, every function as processes
of its own whose clocks differ by up to 10 s, and sends records of several
organizations to endpoints whose receivers fail half of the requests. Meanwhile
it kills processes of functions and the whole service, fails requests to the
table, and for a while all of them. Then the faults end, and chaos compares what
was sent with what was stored, listed, counted and received: nothing is lost or
listed wrongly, every delivery has ended, every counter is right, little is
accepted twice, commerce redrive clears all dead letters, and a copy by the feed
of changes equals the table. The exit code is 1 when one of these promises is
broken, and the folder with the service's data and log is kept then.

It needs Linux, Go and a checkout of the repository.`,
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
