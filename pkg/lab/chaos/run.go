// Package chaos runs the whole service, every function as processes, and breaks it: it kills processes and the whole,
// fails the table's requests, takes the table away for a while, lets clocks differ and has receivers misbehave. Then it
// compares the sent records with those stored, listed, counted and received. It needs Linux.
//
// A delivery whose worker is killed may be made again, and the comparison looks for no cause of each. It wants at most
// one in ten to be accepted twice, and none of those that come after the faults have ended. The table server itself is
// not killed, no delivery's message is repeated, no endpoint is a queue, and no copy follows X-Sync-From.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/lab/workload"
)

// Config says what to run.
type Config struct {
	Program  string // path of the commerce command
	Template string // of a checkout of the repository
	BinDir   string // where the table server is installed
	DataDir  string // keeps the service's data and log, for a look after the run; "" for a temporary folder

	Seed      uint64
	Events    int           // that the records have
	Chaos     time.Duration // of kills and faults
	Calm      time.Duration // at most, after it, until every delivery has ended
	KillEvery time.Duration // between two kills of a function's process, on average
	Restarts  int           // how often the whole service is killed and started again
	Faults    float64       // share of the requests to the table that fail
	Outage    time.Duration // in the middle, in which all of them fail
	Clocks    time.Duration // by which the clocks of the functions' processes differ, at most

	Out io.Writer // gets the progress and the report
}

const organizations = 4

// run is one run in progress.
type run struct {
	Config
	started   time.Time
	table     *workload.Table
	process   *workload.Process
	service   *workload.Service
	receivers *receivers
	tenants   []*tenant
	feeds     []*feedCopy
	load      *load
	killer    *killer
}

// Run makes a run and writes a report. Its error says that a promise is broken, or that the run could not be made.
func Run(ctx context.Context, cfg Config) (err error) {
	r := &run{Config: cfg, started: time.Now()}
	r.say("seed %d", r.Seed)
	dir := cfg.DataDir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "commerce-chaos-"); err != nil {
			return fmt.Errorf("make a folder for the run: %w", err)
		}
		defer os.RemoveAll(dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	log, err := os.Create(filepath.Join(dir, "service.log"))
	if err != nil {
		return fmt.Errorf("write the service's log: %w", err)
	}
	defer log.Close()
	if r.table, err = workload.StartTable(ctx, cfg.BinDir, filepath.Join(dir, "table"), faults.Config{Seed: cfg.Seed}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.table.Close()) }()
	env := []string{r.table.Env}
	if r.Clocks > 0 {
		overlay, err := r.overlay(dir)
		if err != nil {
			return err
		}
		env = append(env, overlay)
	}
	if r.process, err = workload.NewProcess(ctx, cfg.Program, cfg.BinDir, filepath.Join(dir, "data"), log, env...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.process.Close()) }()
	if r.receivers, err = startReceivers(ctx, r.random(1)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.receivers.server.Close()) }()
	return r.do(ctx)
}

func (r *run) do(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.breakAll(ctx); err != nil {
		return err
	}
	e, err := r.settle(ctx)
	if err != nil {
		return err
	}
	if err := r.read(ctx, e); err != nil {
		return err
	}
	broken := r.report(e)
	if err := r.process.Stop(); err != nil {
		return err
	}
	if broken > 0 {
		return fmt.Errorf("seed %d: %d promises are broken", r.Seed, broken)
	}
	return nil
}

// random returns a source of numbers for one purpose.
func (r *run) random(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(r.Seed, purpose)) //nolint:gosec // faults are to repeat
}

func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.Out, "%6s  %s\n", time.Since(r.started).Round(time.Second), fmt.Sprintf(format, args...))
}

// start starts the service while the table does not fail. Its servers are where they were before.
func (r *run) start(ctx context.Context) (err error) {
	r.table.Off()
	defer r.table.On()
	if r.service, err = r.process.Start(ctx, "--template", r.Template, "--processes"); err != nil {
		return err
	}
	if r.load != nil && r.load.service.Info.SQSEndpoint != r.service.Info.SQSEndpoint {
		return errors.New("another program has taken the queues' port: run it again")
	}
	return r.shortenVisibility(ctx)
}

// shortenVisibility has messages that a killed process had received come again after seconds, not minutes. Each start
// of the service sets it back.
func (r *run) shortenVisibility(ctx context.Context) error {
	const deliveries, others = 30, 10 // seconds; an attempt and its bookkeeping take less than the first
	queues, err := r.service.ReadQueues(ctx)
	if err != nil {
		return err
	}
	for _, q := range queues {
		seconds := others
		if strings.Contains(q.Name, "Deliveries") {
			seconds = deliveries
		}
		if q.Dead {
			continue
		}
		if _, err := r.service.Queues.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
			QueueUrl: &q.URL, Attributes: map[string]string{string(types.QueueAttributeNameVisibilityTimeout): strconv.Itoa(seconds)},
		}); err != nil {
			return fmt.Errorf("shorten the visibility of %s: %w", q.Name, err)
		}
	}
	return nil
}

// prepare makes organizations and endpoints.
func (r *run) prepare(ctx context.Context) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	for i := range organizations {
		made, err := r.service.NewTenant(ctx)
		if err != nil {
			return err
		}
		t := &tenant{Tenant: made}
		for _, e := range endpoints(i == 0) {
			if err := r.receivers.subscribe(ctx, t, e); err != nil {
				return err
			}
		}
		r.tenants, r.feeds = append(r.tenants, t), append(r.feeds, newFeedCopy(t))
	}
	r.load = &load{random: r.random(2), tenants: r.tenants, service: r.service}
	r.killer = &killer{random: r.random(3), every: r.KillEvery}
	r.say("%d organizations with %d endpoints are there", organizations, len(r.receivers.endpoints))
	return nil
}

// rates are those at which a share of all requests to the table fails in one way or another, and as many batches are
// done by halves.
func rates(share float64) faults.Rates {
	return faults.Rates{
		faults.Throttle: 0.35 * share, faults.InternalError: 0.1 * share, faults.LostRequest: 0.1 * share, faults.Timeout: 0.02 * share,
		faults.Conflict: 0.2 * share, faults.FalseError: 0.1 * share, faults.LostAnswer: 0.13 * share, faults.Unprocessed: share,
	}
}

// outage fails every request: connections break, hang, or bring errors.
var outage = faults.Rates{faults.LostRequest: 0.3, faults.Timeout: 0.02, faults.Throttle: 0.5, faults.InternalError: 1}

// breakAll sends nine in ten of the events while everything fails, and the rest in calm.
func (r *run) breakAll(ctx context.Context) error {
	const early, sending = 0.9, 0.85 // of the events, and of the time
	r.table.SetRates(rates(r.Faults))
	group, running := errgroup.WithContext(ctx)
	chaos, end := context.WithTimeout(running, r.Chaos)
	defer end()
	group.Go(func() error {
		return r.load.run(running, int(early*float64(r.Events)), time.Duration(sending*float64(r.Chaos)))
	})
	group.Go(func() error { return r.restarts(running, chaos) })
	group.Go(func() error {
		r.outage(chaos)
		return nil
	})
	group.Go(func() error {
		for pause.For(chaos, lookEvery) == nil {
			for _, f := range r.feeds {
				_ = f.sync(chaos) // what fails is read again
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	r.table.SetRates(nil)
	r.say("calm after %d events; %d kills; %s", r.load.sent(), len(r.killer.kills), r.table.Counts())
	// A start makes the messages visible that killed processes had received.
	if err := errors.Join(r.process.Stop(), r.start(ctx)); err != nil {
		return err
	}
	r.load.calm = true
	return r.load.run(ctx, r.Events, 0)
}

// outage takes the table away in the middle of the chaos.
func (r *run) outage(ctx context.Context) {
	if r.Outage == 0 || pause.For(ctx, (r.Chaos-r.Outage)/2) != nil {
		return
	}
	r.say("the table goes away")
	r.table.SetRates(outage)
	_ = pause.For(ctx, r.Outage) // it ends with the chaos too
	r.table.SetRates(rates(r.Faults))
}

// restarts runs the service so many times and once more, each time until it is killed as a whole. Meanwhile its
// processes are killed.
func (r *run) restarts(ctx, chaos context.Context) error {
	for n := range r.Restarts + 1 {
		once, cancel := context.WithTimeout(chaos, r.Chaos/time.Duration(r.Restarts+1))
		r.killer.run(once, r.process)
		cancel()
		if n == r.Restarts {
			return nil
		}
		if err := r.process.Kill(); err != nil {
			return err
		}
		r.killer.note("the whole")
		if err := r.start(ctx); err != nil {
			return err
		}
	}
	return nil
}
