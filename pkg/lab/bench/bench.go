package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"

	"github.com/commerce-integration/service/pkg/lab/meter"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/local/runner"
)

// Config says what to measure and how much of it.
type Config struct {
	Template string        // path of template.yaml
	BinDir   string        // where the table server is installed
	Sections []string      // by name
	Rounds   int           // of each load
	Duration time.Duration // of each round of requests, and for which latency is measured
	Profiles string        // folder for CPU profiles of what runs in this process; "" makes none
	Out      io.Writer     // of the report
	Log      io.Writer     // of progress and of what the service logs

	// For the sections about reads. DataDir keeps the service's data for a later
	// run with the same number of products; "" is a temporary folder.
	DataDir  string
	Products int
	Quiet    time.Duration // before requests for changes long after the last one

	// For the section about scattered requests.
	Tenants        int // that are simulated, of the modelled ones
	TenantProducts int // that each has
	Instances      int // likewise of those
	Requests       int // of each row

	// For the sections about webhooks.
	Program  string // path of the commerce command
	Events   int    // of a round of deliveries
	Rate     int    // events a second whose latency is measured
	Stored   []int  // events that are stored before, for each row of latencies
	Others   int    // events a second of another organization
	Waiting  int    // events that wait for an endpoint that hangs
	Imported int    // records of an import
}

// Section measures some figures and writes them into tables of the report.
type Section struct {
	Name, About string
	run         func(*bench, context.Context) error
}

// ReadSections are about requests and what they cost, in the order of the
// report. The last two take some minutes each.
func ReadSections() []Section {
	return []Section{
		{"lists", "lists over HTTP from the running service", (*bench).lists},
		{"items", "records by id over HTTP, beside what the table alone answers", (*bench).items},
		{"units", "read and write units of requests and changes", (*bench).units},
		{"feed", "how fast a client of the feed catches up, and what it costs while nothing changes", (*bench).feed},
		{"costs", "what a million requests and changes cost", (*bench).costs},
		{"scattered", "what a list costs where many instances serve many tenants", (*bench).scattered},
		{"bill", "what a million requests and deliveries cost of everything that AWS charges", (*bench).bill},
	}
}

// WebhookSections are about deliveries. The last takes longer than the others
// together.
func WebhookSections() []Section {
	return []Section{
		{"end-to-end", "deliveries as fast as they go, from a record's message to its receipt", (*bench).endToEnd},
		{"table", "what a delivery uses of the table", (*bench).tablePerEvent},
		{"filtered", "what events use of the table of which a filter keeps out most", (*bench).filtered},
		{"alone", "what an event takes that comes alone: calls, units, invocations, processor time", (*bench).alone},
		{"latency", "from a record's message to its receipt at a moderate rate", (*bench).latency},
		{"isolation", "what others feel of an endpoint that hangs, and of an import", (*bench).isolation},
	}
}

// bench is one run of the sections.
type bench struct {
	Config
	dir      string
	tables   []*table // of the current section
	meter    *meter.Meter
	metered  atomic.Bool // whether the embedded service's calls of the table are counted
	embedded *shop       // started when a section needs it first
	invoked  invocations // of the embedded service's functions
	spent    []spent     // what requests and changes used of the table, for their costs
	all      []bill      // of scattered requests
	receiver *workload.Receiver
}

// Run measures the sections that cfg names, of those that there are, and writes
// the report. It leaves nothing behind but the data folder of cfg.
func Run(ctx context.Context, all []Section, cfg Config) (err error) {
	for _, name := range cfg.Sections {
		if !slices.ContainsFunc(all, func(s Section) bool { return s.Name == name }) {
			return fmt.Errorf("there is no section %q; there are\n%s", name, Describe(all))
		}
	}
	if cfg.Profiles != "" {
		if err := os.MkdirAll(cfg.Profiles, 0o700); err != nil {
			return fmt.Errorf("make the folder for profiles: %w", err)
		}
	}
	b := &bench{Config: cfg, meter: meter.New(), invoked: invocations{of: map[string]int{}}}
	if b.dir, err = os.MkdirTemp("", "commerce-bench-"); err != nil {
		return fmt.Errorf("make a folder for the data: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.receiver, err = workload.NewReceiver(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.receiver.Close()) }()
	defer func() {
		if b.embedded != nil {
			err = errors.Join(err, b.embedded.Close())
		}
	}()
	fmt.Fprintf(b.Out, "%s; load %s.\n", thisMachine(time.Now()), loadAverage())
	for _, s := range all {
		if !slices.Contains(cfg.Sections, s.Name) {
			continue
		}
		b.progress("%s …", s.About)
		started := time.Now()
		if err := s.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		b.progress("%s took %.1f s", s.Name, time.Since(started).Seconds())
		for _, t := range b.tables {
			t.print(b.Out)
		}
		b.tables = nil
	}
	return nil
}

// Describe lists sections for a help.
func Describe(sections []Section) string {
	var text strings.Builder
	for _, s := range sections {
		fmt.Fprintf(&text, "  %-10s %s\n", s.Name, s.About)
	}
	return text.String()
}

func (b *bench) progress(format string, args ...any) { fmt.Fprintf(b.Log, format+"\n", args...) }

// embed returns the service within this process, which it starts at first.
func (b *bench) embed(ctx context.Context) (*shop, error) {
	if b.embedded != nil {
		return b.embedded, nil
	}
	dir := b.DataDir
	if dir == "" {
		dir = filepath.Join(b.dir, "embedded")
	}
	running, err := workload.Embed(ctx, b.Template, b.BinDir, dir, b.Log, func(cfg *runner.Config) {
		cfg.AWS, cfg.Invoked = b.attach, b.invoked.add
	})
	if err != nil {
		return nil, err
	}
	s, err := newShop(ctx, running)
	if err != nil {
		return nil, errors.Join(err, running.Close())
	}
	b.embedded = s
	return s, nil
}

// attach lets the meter see the calls of the service's clients while metering
// is on.
func (b *bench) attach(cfg *aws.Config) {
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		if !b.metered.Load() {
			return nil
		}
		return b.meter.Install(stack)
	})
}

// metering counts what the embedded service uses of the table during a run.
func (b *bench) metering(run func() error) (map[meter.Use]meter.Units, error) {
	b.meter.Reset()
	b.metered.Store(true)
	defer b.metered.Store(false)
	err := run()
	return b.meter.Uses(), err
}
