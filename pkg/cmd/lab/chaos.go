package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/lab/chaos"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

func newChaosCommand() *cobra.Command {
	var cfg chaos.Config
	var runs int
	cmd := &cobra.Command{
		Use: "chaos", Short: "Break the service while it delivers, and check what it promises", Args: cobra.NoArgs,
		Long: `Chaos runs the whole service in a temporary folder, every function as processes
of its own, and sends records of several organizations to endpoints whose
receivers fail half of the requests. Meanwhile it kills processes of functions
and the whole service, and fails requests to the table. With --outage all of
these fail for a while, and with --clocks the processes' clocks differ. Then the
faults end, and chaos compares what was sent with what was stored, listed,
counted and received: nothing is lost or listed wrongly, every delivery has
ended, every counter is right, little is accepted twice, commerce redrive clears
all dead letters, and a copy by the feed of changes equals the table. The exit
code is 1 when one of these promises is broken.

It needs Linux, Go and a checkout of the repository.`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cfg.Outage < 0 || cfg.Outage > 0 && cfg.Outage >= cfg.Chaos {
				return fmt.Errorf("--outage %s: must be shorter than --chaos, %s", cfg.Outage, cfg.Chaos)
			}
			if cfg.Clocks < 0 {
				return fmt.Errorf("--clocks %s: must not be negative", cfg.Clocks)
			}
			if cfg.BinDir, err = tableserver.CacheDir(); err != nil {
				return err
			}
			if cfg.Seed == 0 {
				cfg.Seed = rand.Uint64() //nolint:gosec // it need not be secret
			}
			cfg.Out = cmd.OutOrStdout()
			return withCommerce(cmd, func(program string) error {
				cfg.Program = program
				for range runs {
					if err := chaos.Run(cmd.Context(), cfg); err != nil {
						return err
					}
					cfg.Seed++
				}
				return nil
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Template, "template", "template.yaml", "the stack's template")
	flags.StringVar(&cfg.DataDir, "data", "", "new folder that keeps the service's data and log, for a look after the run (default: a temporary one)")
	flags.Uint64Var(&cfg.Seed, "seed", 0, "of what goes wrong; 0 is one by chance")
	flags.IntVar(&runs, "runs", 1, "one after the other, each with the next seed, until one breaks a promise")
	flags.IntVar(&cfg.Events, "events", 20_000, "events to send")
	flags.DurationVar(&cfg.Chaos, "chaos", 4*time.Minute, "how long everything goes wrong")
	flags.DurationVar(&cfg.Calm, "calm", 20*time.Minute, "how long it may take at most until all is at its end then")
	flags.DurationVar(&cfg.KillEvery, "kill-every", 200*time.Millisecond, "time between two kills of a function's process, on average")
	flags.IntVar(&cfg.Restarts, "restarts", 2, "how often the whole service is killed")
	flags.Float64Var(&cfg.Faults, "faults", 0.15, "share of the requests to the table that fail")
	flags.DurationVar(&cfg.Outage, "outage", 0, "for how long of it every request of the functions to the table fails, in its middle")
	flags.DurationVar(&cfg.Clocks, "clocks", 0, "by which the clocks of processes differ, at most; beyond 5m receivers refuse signatures")
	return cmd
}
