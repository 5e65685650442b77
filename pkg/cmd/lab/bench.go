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

// pageHead begins the page of results.
const pageHead = `# Measured

` + "`make measured`" + ` writes this page in about ten minutes. Everything runs on one machine, the client, the receivers and
what stands in for AWS too. The machine's speed varies by half from day to day: compare what was measured together.
` + "`go test -bench`" + ` measures single packages.

`

func newBenchCommand() *cobra.Command {
	var cfg bench.Config
	var quick bool
	var page string
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure the service on this machine", Args: cobra.NoArgs,
		Long: "Bench starts the service in temporary folders on ports of its own, sends records and requests\n" +
			"to it, and prints what it measures. Its sections:\n\n" + bench.Describe(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if quick {
				cfg.Events, cfg.Rounds, cfg.Paced, cfg.Organizations = 500, 1, 2*time.Second, 20
				cfg.Imported, cfg.Products, cfg.Duration = 2_000, 2_000, 200*time.Millisecond
			}
			if cfg.BinDir, err = tableserver.CacheDir(); err != nil {
				return err
			}
			cfg.Out, cfg.Log = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if page == "" {
				return runBench(cmd, cfg)
			}
			file, err := os.Create(page)
			if err != nil {
				return fmt.Errorf("write the page: %w", err)
			}
			defer func() { err = errors.Join(err, file.Close()) }()
			fmt.Fprintf(file, "%s`lab %s` on ", pageHead, strings.Join(os.Args[1:], " "))
			cfg.Out = io.MultiWriter(cfg.Out, file)
			return runBench(cmd, cfg)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Template, "template", "template.yaml", "the stack's template")
	flags.StringVar(&cfg.Program, "program", "", "the commerce command of another build, to compare with (default: this checkout's)")
	flags.StringSliceVar(&cfg.Sections, "only", nil, "names of the sections to measure (default: all)")
	flags.BoolVar(&quick, "quick", false, "with little data and for moments only, to see that everything works")
	flags.StringVar(&page, "page", "", "file that gets the report as a page of Markdown")
	flags.IntVar(&cfg.Events, "events", 10_000, "events of a burst")
	flags.IntVar(&cfg.Rounds, "rounds", 2, "bursts, and loads of requests")
	flags.IntVar(&cfg.Rate, "rate", 100, "events a second that come one at a time")
	flags.DurationVar(&cfg.Paced, "paced", 20*time.Second, "for how long they come")
	flags.IntVar(&cfg.Organizations, "organizations", 300, "that events are spread over")
	flags.IntVar(&cfg.Imported, "imported", 30_000, "records of an import")
	flags.IntVar(&cfg.Products, "products", 100_000, "products that the lists show")
	flags.DurationVar(&cfg.Duration, "duration", 3*time.Second, "of a load of requests")
	return cmd
}

func runBench(cmd *cobra.Command, cfg bench.Config) error {
	if cfg.Program != "" {
		return bench.Run(cmd.Context(), cfg)
	}
	return withCommerce(cmd, func(program string) error {
		cfg.Program = program
		return bench.Run(cmd.Context(), cfg)
	})
}

// withCommerce builds the commerce command into a temporary folder for a run.
func withCommerce(cmd *cobra.Command, run func(program string) error) error {
	dir, err := os.MkdirTemp("", "commerce-lab-")
	if err != nil {
		return fmt.Errorf("make a folder for the commerce command: %w", err)
	}
	defer os.RemoveAll(dir)
	program, err := workload.Build(cmd.Context(), dir)
	if err != nil {
		return err
	}
	return run(program)
}
