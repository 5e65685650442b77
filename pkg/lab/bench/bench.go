// Package bench measures the service on this machine. It runs the whole of it as a process, sends records and requests
// through the sockets that a user's go through, and prints tables. The Go benchmarks in a package
// measure what that package does alone. Requests that are scattered over many instances, events that a filter keeps
// out, and endpoints that hang are not measured.
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
	"time"

	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/lab/workload"
)

// Config says what to measure and how much of it.
type Config struct {
	Template string   // path of template.yaml
	BinDir   string   // where the table server is installed
	Program  string   // path of the commerce command
	Sections []string // by name; nil is all

	Events        int           // of a burst
	Rounds        int           // bursts, and loads of requests
	Rate          int           // events a second that come one at a time
	Paced         time.Duration // for how long
	Organizations int           // that events are spread over
	Imported      int           // records of an import
	Products      int           // that the lists show
	Duration      time.Duration // of a load of requests

	Out io.Writer // of the report
	Log io.Writer // of progress and of what the service logs
}

// section measures some figures and prints them.
type section struct {
	name, about string
	run         func(*bench, context.Context) error
}

// sections in the order of the report.
var sections = []section{
	{"deliveries", "events one at a time and in a burst, of one organization and of many: latency, rate, CPU", (*bench).deliveries},
	{"import", "another organization's events beside an import", (*bench).besideImport},
	{"units", "calls and units of the table for an event and for a request", (*bench).units},
	{"reads", "lists, records by id and the feed over HTTP", (*bench).reads},
}

// Describe lists the sections for a help.
func Describe() string {
	var text strings.Builder
	for _, s := range sections {
		fmt.Fprintf(&text, "  %-10s  %s\n", s.name, s.about)
	}
	return text.String()
}

// bench is one run of the sections.
type bench struct {
	Config
	dir      string
	receiver *workload.Receiver
}

// Run measures the sections and writes the report. It leaves nothing behind.
func Run(ctx context.Context, cfg Config) (err error) {
	for _, name := range cfg.Sections {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			return fmt.Errorf("unknown section %q; the sections are\n%s", name, Describe())
		}
	}
	b := &bench{Config: cfg}
	if b.dir, err = os.MkdirTemp("", "commerce-bench-"); err != nil {
		return fmt.Errorf("make a folder for the data: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.receiver, err = workload.NewReceiver(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.receiver.Close()) }()
	fmt.Fprintf(b.Out, "%s; load %s.\n", thisMachine(time.Now()), loadAverage())
	for _, s := range sections {
		if len(cfg.Sections) > 0 && !slices.Contains(cfg.Sections, s.name) {
			continue
		}
		fmt.Fprintf(b.Log, "%s …\n", s.about)
		if err := s.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// service is a service without data in a process of its own.
type service struct {
	*workload.Service
	process *workload.Process
	table   *workload.Table // nil where the service has a table server of its own
}

// withService runs a service, behind a proxy before its table if a configuration of that is given.
func (b *bench) withService(ctx context.Context, table *faults.Config, measure func(*service) error) (err error) {
	dir, err := os.MkdirTemp(b.dir, "")
	if err != nil {
		return fmt.Errorf("make a folder for the data: %w", err)
	}
	s := &service{}
	var env []string
	if table != nil {
		if s.table, err = workload.StartTable(ctx, b.BinDir, filepath.Join(dir, "table"), *table); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.table.Close()) }()
		env = append(env, s.table.Env)
	}
	if s.process, err = workload.NewProcess(ctx, b.Program, b.BinDir, filepath.Join(dir, "data"), b.Log, env...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.process.Close()) }()
	if s.Service, err = s.process.Start(ctx, "--template", b.Template); err != nil {
		return err
	}
	return measure(s)
}
