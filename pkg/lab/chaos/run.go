package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/local/clocks"
	"github.com/commerce-integration/service/pkg/local/faults"
)

// Config says what to run.
type Config struct {
	Command  []string // the commerce command: a program and the arguments before a subcommand
	Env      []string // of the command, beside this process's own
	Template string   // the stack's template, in a checkout of the repository
	BinDir   string   // where the table server is installed
	DataDir  string   // keeps the service's data, for a look after the run; "" for a temporary folder

	Seed      uint64
	Events    int           // that the records have
	Chaos     time.Duration // of kills and faults; records that are not sent by then are sent in calm
	Calm      time.Duration // at most, after it and after each delivery's due mark, until every delivery has ended; a quiet machine needs less
	KillEvery time.Duration // between two kills of a function's process, on average
	Restarts  int           // how often the whole service is killed and started again
	Retries   int           // of an endpoint, at most; the second comes after a minute
	Faults    []float64     // shares of requests to the table that fail, one for each run of the service
	Outage    time.Duration // of the table, in the middle of the chaos and shorter than it; 0: none
	Clocks    time.Duration // by which the clocks of the functions' processes differ, at most

	Out io.Writer // gets the progress and the report
	Log io.Writer // gets what the service writes as warnings and errors
}

// Defaults is the usual run. What it lacks must be set, but for Env and DataDir.
func Defaults() Config {
	return Config{
		Events: 20_000, Chaos: 4 * time.Minute, Calm: 6 * time.Minute, KillEvery: 200 * time.Millisecond, Restarts: 2, Retries: 2,
		Faults: []float64{0.05, 0.15, 0.3},
	}
}

// run is one run in progress.
type run struct {
	Config
	started   time.Time
	log       *serviceLog
	process   *workload.Process
	receivers *receivers
	tenants   []*tenant
	copies    []*recordCopy           // of the tenants' records
	feeds     []*feedCopy             // likewise, by the feed
	found     map[value.ID]value.Time // the records that are stored
	load      *load
	tamperer  *messageTamperer
	killer    *killer
	report    report

	mu      sync.Mutex // guards service, which changes with each start
	service *workload.Service
}

// Run makes a run and writes a report. Its error says that a promise is broken,
// or that the run could not be made.
func Run(ctx context.Context, cfg Config) error {
	return inFolder(ctx, cfg, (*run).faults)
}

// inFolder does a run in the data folder, or in a temporary one.
func inFolder(ctx context.Context, cfg Config, do func(*run, context.Context) error) (err error) {
	r := &run{Config: cfg, started: time.Now(), log: newServiceLog(cfg.Log)}
	dir := cfg.DataDir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "commerce-chaos-"); err != nil {
			return fmt.Errorf("make a folder for the run: %w", err)
		}
		defer os.RemoveAll(dir)
	}
	if r.process, err = workload.NewProcess(ctx, cfg.Command, cfg.Env, cfg.BinDir, filepath.Join(dir, "data"), r.log); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.process.Close()) }()
	return do(r, ctx)
}

// random returns a source of numbers for one purpose.
func (r *run) random(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(r.Seed, purpose)) //nolint:gosec // faults are to repeat
}

func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.Out, "%6s  %s\n", time.Since(r.started).Round(time.Second), fmt.Sprintf(format, args...))
}

// faults is the scenario in which everything fails.
func (r *run) faults(ctx context.Context) (err error) {
	r.say("seed %d", r.Seed)
	if r.receivers, err = startReceivers(ctx, r.random(1)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.receivers.server.Close()) }()
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.faultPhase(ctx); err != nil {
		return err
	}
	e, err := r.settle(ctx)
	if err != nil {
		return err
	}
	return r.judge(ctx, e)
}

// prepare makes organizations and endpoints while nothing fails yet.
func (r *run) prepare(ctx context.Context) error {
	if err := r.start(ctx, ""); err != nil {
		return err
	}
	const organizations = 4
	for i := range organizations {
		made, err := r.service.NewTenant(ctx)
		if err != nil {
			return err
		}
		t := &tenant{Tenant: made}
		for _, e := range endpoints(i == 0) {
			e.retries = min(e.retries, r.Retries)
			url := r.receivers.url(e)
			if e.behaviour == queued {
				if url, err = r.makeQueue(ctx, t, e); err != nil {
					return err
				}
			}
			if err := r.receivers.subscribe(ctx, t, e, url); err != nil {
				return err
			}
		}
		r.tenants, r.copies, r.feeds = append(r.tenants, t), append(r.copies, newCopy(t)), append(r.feeds, newFeedCopy(t))
	}
	r.load = &load{random: r.random(2), tenants: r.tenants, want: r.Events}
	r.tamperer = &messageTamperer{random: r.random(3), queue: r.queue}
	r.killer = &killer{random: r.random(4), every: r.KillEvery}
	r.say("%d organizations with %d endpoints are there", organizations, len(r.receivers.endpoints))
	return r.process.Stop()
}

// clocks are those of the functions' processes.
func (r *run) clocks() clocks.Clocks { return clocks.Clocks{Apart: r.Clocks, Seed: r.Seed + 1} }

// start starts the service with every function as processes, whose requests to
// the table fail at the rates of faults, "" for none.
func (r *run) start(ctx context.Context, faults string) error {
	service, err := r.process.Start(ctx, "--template", r.Template, "--log-level", "info", "--processes",
		"--faults", faults, "--clocks", r.Clocks.String(), "--seed", strconv.FormatUint(r.Seed+1, 10))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.service = service
	return nil
}

// faultsOf are the rates at which a share of all requests to the table fails in
// one way or another. The same share is delayed, and as many batches are done
// by halves.
func faultsOf(share float64) string {
	shares := map[faults.Fault]float64{
		faults.Throttle: 0.35, faults.InternalError: 0.1, faults.LostRequest: 0.1, faults.Timeout: 0.02,
		faults.Conflict: 0.2, faults.FalseError: 0.1, faults.LostAnswer: 0.13,
		faults.Delay: 1, faults.Unprocessed: 1,
	}
	var text []string
	for _, kind := range faults.All() {
		text = append(text, fmt.Sprintf("%s=%.3f", kind, 100*share*shares[kind]))
	}
	return strings.Join(text, ",")
}

// queue is a client that tries each call once, and the URL of a queue.
func (r *run) queue(name string) (*sqs.Client, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	client := sqs.New(r.service.Queues.Options(), func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
	return client, strings.TrimSuffix(r.service.Info.RecordsQueueURL, "RecordsQueue") + name
}

func (r *run) records() (*sqs.Client, string) { return r.queue("RecordsQueue") }

// table is the service's own, past the faults.
func (r *run) table() *dynamo.Table {
	return dynamo.New(r.service.Table, r.service.Info.TableName, time.Now)
}

// faultPhase runs the service several times while everything fails and records
// come in, and leaves it in calm once all are sent.
func (r *run) faultPhase(ctx context.Context) error {
	const sending, returning = 0.85, 0.33 // of the time
	share := func(of float64) time.Duration { return time.Duration(of * float64(r.Chaos)) }
	began := time.Now()
	r.receivers.returnAt(began.Add(share(returning)))
	phases := r.phases()
	if err := r.start(ctx, phases[0].faults); err != nil {
		return err
	}
	running, end := context.WithCancel(ctx)
	defer end()
	group, running := errgroup.WithContext(running)
	sent := make(chan struct{})
	group.Go(func() error {
		defer close(sent)
		return r.load.run(running, r.records, share(sending))
	})
	group.Go(func() error {
		r.tamperer.run(running)
		return nil
	})
	group.Go(func() error {
		r.follow(running)
		return nil
	})
	group.Go(func() error {
		defer end()
		if err := r.serviceRuns(running, began, phases); err != nil {
			return err
		}
		select {
		case <-sent:
		case <-running.Done():
		}
		return nil
	})
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return ctx.Err()
}

// phase is one run of the service in the chaos.
type phase struct {
	name   string
	faults string        // of requests to the table
	until  time.Duration // since the chaos began
	outage bool
}

// outage fails every request: connections break, hang, or bring errors.
var outage = fmt.Sprintf("%s=30,%s=2,%s=50,%s=100", faults.LostRequest, faults.Timeout, faults.Throttle, faults.InternalError)

// phases divides the chaos into a run of the service for each restart and one
// more, and the outage after the first half of them.
func (c *Config) phases() (all []phase) {
	runs, until := c.Restarts+1, time.Duration(0)
	for i := range runs {
		share := c.Faults[min(i, len(c.Faults)-1)]
		until += (c.Chaos - c.Outage) / time.Duration(runs)
		all = append(all, phase{name: fmt.Sprintf("%.0f%% faults", 100*share), faults: faultsOf(share), until: until})
		if c.Outage > 0 && i == (runs-1)/2 {
			until += c.Outage
			all = append(all, phase{name: "the table away", faults: outage, until: until, outage: true})
		}
	}
	return all
}

// serviceRuns runs the service once for each phase, and starts it in calm at the
// end.
func (r *run) serviceRuns(ctx context.Context, began time.Time, phases []phase) error {
	for i := range phases {
		if phases[i].outage { // lasts in full, however late it begins
			began = time.Now().Add(r.Outage - phases[i].until)
		}
		if err := r.serviceRun(ctx, i, phases, began.Add(phases[i].until)); err != nil {
			return err
		}
		next := ""
		if i+1 < len(phases) {
			next = phases[i+1].faults
		} else {
			r.report.calmAt = time.Now()
		}
		if err := r.start(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

// serviceRun is one run of the service, which is killed at a time, and stopped
// if it is the last.
func (r *run) serviceRun(ctx context.Context, i int, phases []phase, until time.Time) error {
	began, before, killed, last := time.Now(), r.load.sent(), len(r.killer.all()), i == len(phases)-1
	if !phases[i].outage { // in which messages come again as in AWS, and use up no more receives
		if err := r.shortenVisibility(ctx); err != nil {
			return err
		}
	}
	running, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	if err := r.killer.run(running, r.process.PID()); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// A service that is stopped kills what is under way at the end of the time
	// that it leaves to it.
	how, end := "killed", r.process.Kill
	if last {
		how, end = "stopped", r.process.Stop
	}
	if err := end(); err != nil {
		return err
	}
	r.killer.note("", 0, time.Now())
	text := fmt.Sprintf("%s with %s, %d kills, %d events sent, then %s", time.Since(began).Round(time.Second), phases[i].name,
		len(r.killer.all())-killed-1, r.load.sent()-before, how)
	r.report.runs = append(r.report.runs, text)
	r.say("run %d: %s", i+1, text)
	return nil
}

// shortenVisibility has messages that a killed process had received come again
// after seconds instead of minutes. A start of the service sets it back.
func (r *run) shortenVisibility(ctx context.Context) error {
	const deliveries, others = 30, 10 // seconds; an attempt and its bookkeeping take less than the first
	queues, err := workload.ReadQueues(ctx, r.service.Queues)
	if err != nil {
		return err
	}
	for _, q := range queues {
		seconds := others
		if q.Deliveries() {
			seconds = deliveries
		}
		if q.Dead {
			continue
		}
		client, url := r.queue(q.Name)
		if _, err := client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
			QueueUrl: &url, Attributes: map[string]string{string(types.QueueAttributeNameVisibilityTimeout): strconv.Itoa(seconds)},
		}); err != nil {
			return fmt.Errorf("shorten the visibility of %s: %w", q.Name, err)
		}
	}
	return nil
}

// judge completes the evidence, checks every promise and reports.
func (r *run) judge(ctx context.Context, e *evidence) error {
	e.requests, e.kills = r.receivers.seen(e.at), r.killer.all()
	e.held, e.copies = r.tamperer.counts()
	e.clocks = r.clocks()
	e.copied = map[value.ID]value.Time{}
	for _, c := range r.copies {
		if err := c.sync(ctx); err != nil {
			return err
		}
		maps.Copy(e.copied, c.live())
		e.reads += c.read
	}
	if err := r.readFeeds(ctx, e); err != nil {
		return err
	}
	r.log.mu.Lock()
	e.attempts, e.complaints = r.log.attempts, r.log.complaints
	messages := r.log.messages
	r.log.mu.Unlock()
	if text, err := r.process.Command(ctx, "verify"); err != nil {
		e.differs = text
	}
	if text, err := r.process.Command(ctx, "status"); err != nil {
		e.waits = text[strings.LastIndexByte(text, '\n')+1:]
	}
	r.report.count(e, messages)
	return r.conclude(fmt.Sprintf("%d events, seed %d", e.events, r.Seed), judge(e))
}

// conclude writes the report and stops the service.
func (r *run) conclude(title string, checks []check) error {
	r.report.title, r.report.checks, r.report.took = title, checks, time.Since(r.started)
	broken := r.report.write(r.Out)
	if err := r.process.Stop(); err != nil {
		return err
	}
	if broken > 0 {
		return fmt.Errorf("%d of %d promises are broken", broken, len(checks))
	}
	return nil
}
