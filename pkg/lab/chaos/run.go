package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/pause"
)

// Run makes a run in a temporary folder and writes a report. Its error says
// that a promise is broken, or that the run could not be made.
func Run(ctx context.Context, cfg Config) error {
	cfg = cfg.withDefaults()
	return inFolder(cfg.DataDir, func(dir string) (err error) {
		r := &run{cfg: cfg, started: time.Now(), notes: newNotes(cfg.Log)}
		defer r.close(&err)
		return r.all(ctx, dir)
	})
}

// inFolder does something in the folder, or in a temporary one.
func inFolder(kept string, do func(dir string) error) (err error) {
	dir := kept
	if dir == "" {
		if dir, err = os.MkdirTemp("", "commerce-chaos-"); err != nil {
			return fmt.Errorf("make a folder for the run: %w", err)
		}
		defer os.RemoveAll(dir)
	}
	return do(filepath.Join(dir, "data"))
}

func (r *run) close(err *error) {
	if r.receivers != nil {
		*err = errors.Join(*err, r.receivers.close())
	}
	if r.service != nil {
		*err = errors.Join(*err, r.service.close())
	}
}

// run is one run in progress.
type run struct {
	cfg       Config
	started   time.Time
	notes     *notes
	service   *service
	receivers *receivers
	orgs      []*organization
	load      *load
	meddler   *meddler
	killer    *killer
	report    report

	mu     sync.Mutex // guards where the queues are
	client *sqs.Client
	base   string
}

// random returns a source of numbers for one purpose.
func (r *run) random(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(r.cfg.Seed, purpose)) //nolint:gosec // trouble is to repeat
}

func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.cfg.Out, "%6s  %s\n", time.Since(r.started).Round(time.Second), fmt.Sprintf(format, args...))
}

func (r *run) all(ctx context.Context, dir string) (err error) {
	r.say("seed %d", r.cfg.Seed)
	if r.receivers, err = startReceivers(ctx, r.cfg.Seed); err != nil {
		return err
	}
	if r.service, err = newService(ctx, &r.cfg, dir, r.notes); err != nil {
		return err
	}
	r.service.processes = true
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.havoc(ctx); err != nil {
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
	if err := r.start(ctx, 0); err != nil {
		return err
	}
	const organizations = 4
	number := 0
	for i := range organizations {
		o, err := newOrganization(r.service)
		if err != nil {
			return err
		}
		if _, err := o.makeApplication(ctx, r.service.info.BaseURL); err != nil {
			return err
		}
		for _, e := range endpoints(i == 0) {
			e.number, e.retries = number, min(e.retries, r.cfg.Retries)
			number++
			if err := o.subscribe(ctx, r.service.info.BaseURL, e, r.receivers); err != nil {
				return err
			}
		}
		r.orgs = append(r.orgs, o)
	}
	r.load = &load{random: r.random(2), orgs: r.orgs, want: r.cfg.Events}
	r.meddler = &meddler{random: r.random(3), queue: r.deliveries}
	r.killer = &killer{random: r.random(4), every: r.cfg.KillEvery}
	r.say("%d organizations with %d endpoints are there", organizations, number)
	return r.service.stop()
}

// endpoints are those of an organization; together they take every event that
// is sent at least once.
func endpoints(first bool) []*endpoint {
	all := []*endpoint{
		{temper: flaky, retries: 2, timeout: 5, subscribed: []string{"order.created", "order.confirmed", "order.paid"}},
		{temper: flaky, retries: 2, timeout: 5, subscribed: []string{"payment.*", "order.completed", "order.fulfilled", "order.shipped", "order.cancelled"}},
		{temper: flaky, retries: 1, timeout: 5, subscribed: []string{"invoice.*"}},
		{temper: steady, retries: 2, timeout: 10, subscribed: []string{"product.*", "customer.created"}},
		{temper: hanging, retries: 2, timeout: 2, subscribed: []string{"product.created"}},
	}
	if first {
		all = append(all,
			&endpoint{temper: dead, retries: 2, timeout: 5, subscribed: []string{"customer.created"}},
			&endpoint{temper: returning, retries: 2, timeout: 5, subscribed: []string{"invoice.issued"}})
	}
	return all
}

// start starts the service, and looks up where its queues are.
func (r *run) start(ctx context.Context, share float64) error {
	if err := r.service.start(ctx, share); err != nil {
		return err
	}
	client := newQueues(r.service.info.SQSEndpoint)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client, r.base = client, strings.TrimSuffix(r.service.info.RecordsQueueURL, "RecordsQueue")
	return nil
}

func (r *run) queue(name string) (*sqs.Client, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.client, r.base + name
}

func (r *run) records() (*sqs.Client, string) { return r.queue("RecordsQueue") }

// deliveries is mostly the main lane.
func (r *run) deliveries() (*sqs.Client, string) {
	const slow = 4 // one time in so many
	if r.meddler.random.IntN(slow) == 0 {
		return r.queue("SlowDeliveriesQueue")
	}
	return r.queue("DeliveriesQueue")
}

// havoc lets the service live some lives in which everything fails, while
// records come in, and leaves it in calm once all are sent.
func (r *run) havoc(ctx context.Context) error {
	const sending, returning = 0.85, 0.33 // of the time
	part := func(of float64) time.Duration { return time.Duration(of * float64(r.cfg.Chaos)) }
	began := time.Now()
	r.receivers.comeBack(began.Add(part(returning)))
	if err := r.start(ctx, r.cfg.Faults[0]); err != nil {
		return err
	}
	living, end := context.WithCancel(ctx)
	defer end()
	group, living := errgroup.WithContext(living)
	sent := make(chan struct{})
	group.Go(func() error {
		defer close(sent)
		return r.load.run(living, r.records, part(sending))
	})
	group.Go(func() error {
		r.meddler.run(living)
		return nil
	})
	group.Go(func() error {
		defer end()
		if err := r.lives(living, began); err != nil {
			return err
		}
		select {
		case <-sent:
		case <-living.Done():
		}
		return nil
	})
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return ctx.Err()
}

// lives lets the service live one life after the other, the last in calm.
func (r *run) lives(ctx context.Context, began time.Time) error {
	lives := r.cfg.Restarts + 1
	share := func(i int) float64 { return r.cfg.Faults[min(i, len(r.cfg.Faults)-1)] }
	for i := range lives {
		if err := r.live(ctx, i, share(i), began.Add(r.cfg.Chaos*time.Duration(i+1)/time.Duration(lives))); err != nil {
			return err
		}
		next := 0.0
		if i+1 < lives {
			next = share(i + 1)
		} else {
			r.report.calmAt = time.Now()
		}
		if err := r.start(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

// live is one life of the service, until the time.
func (r *run) live(ctx context.Context, i int, share float64, until time.Time) error {
	began, before, killed := time.Now(), r.load.sent(), len(r.killer.all())
	if err := hurry(ctx, r.client); err != nil {
		return err
	}
	living, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	if err := r.killer.run(living, r.service.cmd.Process.Pid); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// What is under way when the time to stop is over is killed at the end of
	// that time.
	how, end, at := "killed", r.service.kill, time.Now
	if i == r.cfg.Restarts {
		how, end = "stopped", r.service.stop
	} else {
		now := time.Now()
		at = func() time.Time { return now }
	}
	if err := end(); err != nil {
		return err
	}
	r.killer.note("", 0, at())
	text := fmt.Sprintf("%s with %.0f%% faults, %d kills, %d events sent, then %s", time.Since(began).Round(time.Second), 100*share,
		len(r.killer.all())-killed-1, r.load.sent()-before, how)
	r.report.lives = append(r.report.lives, text)
	r.say("life %d: %s", i+1, text)
	return nil
}

// table is the service's own, past the faults.
func (r *run) table() *dynamo.Table {
	client := dynamodb.NewFromConfig(runner.AWSConfig(), func(o *dynamodb.Options) { o.BaseEndpoint = &r.service.info.DynamoDBEndpoint })
	return dynamo.New(client, r.service.info.TableName, time.Now)
}

// settle waits until everything has come to its end, with what became dead
// letters moved back once, and returns what there is then.
func (r *run) settle(ctx context.Context) (*evidence, error) {
	r.say("calm: %d events were sent", r.load.sent())
	e, err := r.quiet(ctx)
	if err != nil {
		return nil, err
	}
	redriven, err := r.redrive(ctx, e)
	if err != nil || len(redriven) == 0 {
		return e, err
	}
	e, err = r.quiet(ctx)
	if err == nil {
		e.redriven = redriven
	}
	return e, err
}

// quiet waits until no attempt lies ahead and the queues are empty, or its
// time is over. What is missing then and has nothing on its way is missing for
// good, which a while shows. Further messages of a row wait for minutes, in
// case that the row's own is lost: once no attempt lies ahead, a start of the
// service brings them all at once.
func (r *run) quiet(ctx context.Context) (e *evidence, err error) {
	const interval, calmFor, patience = 3 * time.Second, 2, 10
	told, restarted := time.Time{}, false
	for deadline, still := time.Now().Add(r.cfg.Calm), 0; time.Now().Before(deadline); {
		if err := pause.For(ctx, interval); err != nil {
			return nil, err
		}
		if e, err = r.look(ctx); err != nil {
			return nil, err
		}
		pending, last := e.pending()
		complete := len(e.rows) >= len(e.expected) && len(e.lost) == 0
		switch still++; {
		case pending > 0:
			still = 0
		case e.waiting() > 0 && complete && still >= calmFor && !restarted:
			restarted, still = true, 0
			if err := r.restart(ctx); err != nil {
				return nil, err
			}
		case e.waiting() > 0 && still < patience:
		case still >= patience || still >= calmFor && complete:
			return e, nil
		}
		if time.Since(told) > 15*time.Second {
			told = time.Now()
			r.say("%d of %d rows, %d pending, the last until %s, %d messages", len(e.rows), len(e.expected), pending, last.Local().Format(time.TimeOnly), e.waiting())
		}
	}
	return e, nil
}

func (r *run) look(ctx context.Context) (*evidence, error) {
	e, err := collect(ctx, r.table(), r.orgs, r.load.puts)
	if err == nil {
		e.queues, err = readQueues(ctx, r.client)
	}
	return e, err
}

func (r *run) restart(ctx context.Context) error {
	if err := r.service.stop(); err != nil {
		return err
	}
	return r.start(ctx, 0)
}

// redrive moves back what the service buried, as an operator does.
func (r *run) redrive(ctx context.Context, e *evidence) (map[string]string, error) {
	said := map[string]string{}
	for _, q := range e.queues {
		if !q.dead || q.all() == 0 {
			continue
		}
		args := []string{"redrive", "deliveries"}
		switch {
		case strings.HasPrefix(q.name, "Park"):
			args = []string{"replay"}
		case strings.HasPrefix(q.name, "Records"):
			args[1] = "records"
		case strings.HasPrefix(q.name, "IndexJobs"):
			args[1] = "index-jobs"
		}
		name := "commerce " + strings.Join(args, " ")
		text, err := r.service.command(ctx, args...)
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		said[name] = text
		r.say("%d messages in %s; %s: %s", q.all(), q.name, name, text)
	}
	return said, nil
}

// judge completes the evidence, holds the promises against it and reports.
func (r *run) judge(ctx context.Context, e *evidence) error {
	r.report.took, r.report.title = time.Since(r.started), fmt.Sprintf("%d events, seed %d", e.events, r.cfg.Seed)
	e.requests, e.kills = r.receivers.seen(e.at), r.killer.all()
	e.held, e.copies = r.meddler.counts()
	r.notes.mu.Lock()
	e.attempts, e.complaints = r.notes.attempts, r.notes.complaints
	messages := r.notes.messages
	r.notes.mu.Unlock()
	text, err := r.service.command(ctx, "verify")
	if err != nil {
		e.differs = text
	}
	if text, err := r.service.command(ctx, "status"); err != nil {
		e.waits = text[strings.LastIndexByte(text, '\n')+1:]
	}
	r.report.checks = judge(e)
	r.report.count(e, messages)
	r.report.write(r.cfg.Out)
	if err := r.service.stop(); err != nil {
		return err
	}
	if n := r.report.failed(); n > 0 {
		return fmt.Errorf("%d of %d promises are broken", n, len(r.report.checks))
	}
	return nil
}
