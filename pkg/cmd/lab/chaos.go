package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/lab/chaos"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

func newChaosCommand() *cobra.Command {
	cfg, dead := chaos.Defaults(), chaos.DeadDefaults()
	var scenario string
	cmd := &cobra.Command{
		Use: "chaos", Short: "Break the service while it delivers, and check what it promises", Args: cobra.NoArgs,
		Long: `Chaos runs the whole service in a temporary folder, every function as processes
of its own, and sends records that mean so many events of several organizations
to endpoints whose receivers fail half of the requests. Meanwhile it kills
processes of functions and the whole service, fails requests to the table,
holds messages back and sends them more than once. With --outage every request to
the table fails for a while in the middle of it, and with --clocks the clocks of
processes differ all the time. Then all faults end, and
chaos compares what was sent with what was stored, counted and received: no event
is lost, every delivery has ended, every counter is right, every event that was
accepted twice is explained, commerce redrive clears all dead letters, no list
is wrong, and clients that went on from X-Sync-From, or read the feed of changes,
all the time have copies that equal the table. The exit code is 1 when one of these promises is broken.

--scenario dead-endpoints kills nothing. It sends 200,000 events at once for
1,200 endpoints that refuse connections, and measures how many messages are in
flight, of which a queue has at most 120,000, and how long the events of a
healthy endpoint take meanwhile.

It needs Linux, Go and a checkout of the repository.`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if scenario != "faults" && scenario != "dead-endpoints" {
				return fmt.Errorf("--scenario %s: must be faults or dead-endpoints", scenario)
			}
			if cfg.Outage < 0 || cfg.Outage > 0 && cfg.Outage >= cfg.Chaos {
				return fmt.Errorf("--outage %s: must be shorter than --chaos, %s", cfg.Outage, cfg.Chaos)
			}
			if cfg.Clocks < 0 {
				return fmt.Errorf("--clocks %s: must not be negative", cfg.Clocks)
			}
			if cfg.BinDir, err = tableserver.CacheDir(); err != nil {
				return err
			}
			program, remove, err := buildCommerce(cmd)
			if err != nil {
				return err
			}
			defer remove()
			cfg.Command = []string{program}
			if cfg.Seed == 0 {
				cfg.Seed = rand.Uint64() //nolint:gosec // it need not be secret
			}
			cfg.Out, cfg.Log = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if scenario == "dead-endpoints" {
				return chaos.RunDeadEndpoints(cmd.Context(), cfg, dead)
			}
			return chaos.Run(cmd.Context(), cfg)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&scenario, "scenario", "faults", "faults or dead-endpoints")
	flags.IntVar(&dead.Endpoints, "dead-endpoints", dead.Endpoints, "with --scenario dead-endpoints: how many there are")
	flags.IntVar(&dead.Events, "dead-events", dead.Events, "with --scenario dead-endpoints: events for all of them together")
	flags.StringVar(&cfg.Template, "template", "template.yaml", "the stack's template")
	flags.StringVar(&cfg.DataDir, "data", "", "new folder that keeps the service's data, for a look after the run (default: a temporary one)")
	flags.Uint64Var(&cfg.Seed, "seed", 0, "of what goes wrong; 0 is one by chance")
	flags.IntVar(&cfg.Events, "events", cfg.Events, "events to send")
	flags.DurationVar(&cfg.Chaos, "chaos", cfg.Chaos, "how long everything goes wrong")
	flags.DurationVar(&cfg.Calm, "calm", cfg.Calm, "how long it may take then, and after each delivery's due mark, until all is at its end")
	flags.DurationVar(&cfg.KillEvery, "kill-every", cfg.KillEvery, "time between two kills of a function's process, on average")
	flags.IntVar(&cfg.Restarts, "restarts", cfg.Restarts, "how often the whole service is killed")
	flags.Float64SliceVar(&cfg.Faults, "faults", cfg.Faults, "shares of requests to the table that fail, before the first kill of the whole, after it, and so on")
	flags.DurationVar(&cfg.Outage, "outage", 0, "for how long of it every request of the functions to the table fails, in its middle")
	flags.DurationVar(&cfg.Clocks, "clocks", 0, "by which the clocks of processes differ, at most; beyond 5m receivers refuse signatures")
	return cmd
}
