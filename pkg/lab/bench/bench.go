package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"

	"github.com/commerce-integration/service/pkg/lab/meter"
)

// Config says what to measure and how much of it.
type Config struct {
	Template string // path of template.yaml
	BinDir   string // where the table server is installed
	// DataDir keeps the service's data, which a later run with the same number
	// of products finds; "" is a temporary folder that is removed.
	DataDir  string
	Sections []string      // names; none is all
	Products int           // that the service holds
	Orders   int           // that the index is measured with
	Duration time.Duration // of each round of a load
	Rounds   int           // of each load, of which the best counts
	Profiles string        // folder for a CPU profile of each load; "" makes none
	Out      io.Writer     // of the report
	Log      io.Writer     // of progress and of what the service logs
}

// sections are those that there are, in the order of the report.
func sections() []section[*bench] {
	return []section[*bench]{
		{"index", "the index in memory: sizes, loading, queries, changes", measureIndex},
		{"handler", "requests in the function, without the network", measureHandler},
		{"lists", "lists over HTTP from the running service", measureLists},
		{"items", "records by id over HTTP, beside what the table alone answers", measureItems},
		{"units", "read and write units of requests and changes", measureUnits},
		{"growth", "lists from the table at growing sizes, cold and warm", measureGrowth},
		{"writes", "write units of the index for each change", measureWrites},
		{"costs", "what a million requests and changes cost", measureCosts},
	}
}

// Sections describes the sections by name, in their order.
func Sections() [][2]string { return describe(sections()) }

// bench is one run of the sections. What they share is made when the first
// of them needs it.
type bench struct {
	*report
	cfg     Config
	dir     string
	meter   *meter.Meter
	metered atomic.Bool // whether the service's calls of the table are counted
	running *service
	spent   []spent // what requests and changes used of the table, for their costs
}

// Run measures the sections and writes the report.
func Run(ctx context.Context, cfg Config) (err error) {
	chosen, err := choose(sections(), cfg.Sections)
	if err != nil {
		return err
	}
	b := &bench{report: &report{out: cfg.Out, log: cfg.Log}, cfg: cfg, dir: cfg.DataDir, meter: meter.New()}
	if b.dir == "" {
		if b.dir, err = os.MkdirTemp("", "commerce-bench-"); err != nil {
			return fmt.Errorf("make a folder for the data: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	}
	defer func() {
		if b.running != nil {
			err = errors.Join(err, b.running.close())
		}
	}()
	fmt.Fprintf(cfg.Out, "%s; up to %s products and %s orders.\n", thisMachine(time.Now()), thousands(cfg.Products), thousands(cfg.Orders))
	return runSections(ctx, b.report, b, chosen)
}

// service is the running service, started when it is needed first.
func (b *bench) service(ctx context.Context) (*service, error) {
	if b.running != nil {
		return b.running, nil
	}
	s, err := startService(ctx, &b.cfg, b.dir, b.attach)
	if err != nil {
		return nil, err
	}
	b.running = s
	return s, nil
}

// attach lets the meter see the calls of the service's clients while it is
// wanted, and leaves them alone otherwise.
func (b *bench) attach(cfg *aws.Config) {
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		if !b.metered.Load() {
			return nil
		}
		return b.meter.Install(stack)
	})
}

// loaded is the running service with the products in it.
func (b *bench) loaded(ctx context.Context) (*service, error) {
	s, err := b.service(ctx)
	if err != nil || s.products == b.cfg.Products {
		return s, err
	}
	started := time.Now()
	sent, err := s.hold(ctx, b.cfg.Products)
	if err != nil {
		return nil, fmt.Errorf("load %d products: %w", b.cfg.Products, err)
	}
	if took := time.Since(started).Seconds(); sent > 0 {
		b.progress("%s products loaded through the queue in %.1f s, %s/s", thousands(sent), took, thousands(int(float64(sent)/took)))
	}
	return s, nil
}

// profiled runs a measurement under the CPU profiler, when that is asked for.
func (b *bench) profiled(name string, measure func() error) (err error) {
	if b.cfg.Profiles == "" {
		return measure()
	}
	end, err := profile(filepath.Join(b.cfg.Profiles, name+".prof"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	return measure()
}
