// Package chaos runs the whole service, every function as processes, and breaks it: it kills processes and the whole,
// fails the table's requests, takes the table away for a while, sets clocks apart and has receivers misbehave. Then it
// compares the sent records with those stored, listed, counted, delivered and in the feed. It needs Linux.
//
// A receiver may accept a delivery again, as its worker was killed for example. The comparison names the cause of each
// second acceptance by the service's log, which is kept in full, and wants none without. The table server itself is not
// killed, the queues repeat no message, no endpoint is a queue, and no copy follows X-Sync-From.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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
	Seed   uint64
	Events int           // that the records have
	Chaos  time.Duration // of kills and faults
	Out    io.Writer     // gets the progress and the report
}

const (
	organizations = 4
	restarts      = 2                // of the whole service
	faultRate     = 0.15             // share of the requests to the table that fail
	outagePart    = 8                // one part in so many of the chaos is an outage of the table
	calmTime      = 20 * time.Minute // at most, until every delivery has ended
	lookEvery     = 3 * time.Second
)

// run is one run in progress.
type run struct {
	Config
	started   time.Time
	service   *workload.Service
	tenants   []*tenant
	endpoints map[string]*endpoint // by path
	kills     map[string]int       // by function
	restarts  []time.Time
}

// Run makes a run and writes a report. Its error says that a promise is broken, or that the run could not be made.
func Run(ctx context.Context, cfg Config) error {
	r := &run{Config: cfg, started: time.Now(), endpoints: map[string]*endpoint{}, kills: map[string]int{}}
	return workload.Run(ctx, faults.Config{Seed: cfg.Seed}, r.answers(r.random(1)), func(s *workload.Service) error {
		r.say("seed %d, in %s", r.Seed, s.Dir)
		r.service = s
		for _, step := range []func(context.Context) error{r.prepare, r.breakAll, r.settle} {
			if err := step(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// random returns a source of numbers for one purpose.
func (r *run) random(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(r.Seed, purpose)) //nolint:gosec // faults are to repeat
}

func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.Out, "%6s  %s\n", time.Since(r.started).Round(time.Second), fmt.Sprintf(format, args...))
}

// start starts the service while the table does not fail, with a log that has every attempt. It has messages that a killed
// process had received come again after seconds, not minutes.
func (r *run) start(ctx context.Context) error {
	r.service.Faults.Off()
	defer r.service.Faults.On()
	if err := r.service.Start(ctx, "--processes", "--log-level", "debug"); err != nil {
		return err
	}
	info := r.service.Info
	for _, queue := range []string{info.RecordsQueueURL, info.DeliveriesQueueURL, info.SlowDeliveriesQueueURL, info.IndexJobsQueueURL} {
		_, err := r.service.Queues.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
			QueueUrl: &queue, Attributes: map[string]string{string(types.QueueAttributeNameVisibilityTimeout): "30"},
		})
		if err != nil {
			return fmt.Errorf("shorten the visibility of messages: %w", err)
		}
	}
	return nil
}

// restart makes messages visible that killed processes had received, or that wait in case another is lost.
func (r *run) restart(ctx context.Context, _ *evidence) error {
	killed := r.service.Kill()
	r.restarts = append(r.restarts, time.Now()) // after the last line of its log
	return errors.Join(killed, r.start(ctx))
}

// prepare makes organizations and endpoints.
func (r *run) prepare(ctx context.Context) error {
	if err := errors.Join(r.setClocksApart(), r.start(ctx)); err != nil {
		return err
	}
	for range organizations {
		made, err := r.service.NewTenant(ctx)
		if err != nil {
			return err
		}
		t := &tenant{Tenant: made, copied: revisions{}}
		for _, e := range endpoints() {
			if err := r.subscribe(ctx, t, e); err != nil {
				return err
			}
		}
		r.tenants = append(r.tenants, t)
	}
	r.say("%d organizations with %d endpoints are there", organizations, len(r.endpoints))
	return nil
}

// breakAll sends nine in ten of the events while everything fails, and the rest in calm.
func (r *run) breakAll(ctx context.Context) error {
	const early, sending = 0.9, 0.85 // of the events, and of the time
	random := r.random(2)
	first := int(early * float64(r.Events))
	messages, rest := r.draw(random, first), r.draw(random, r.Events-first)
	r.service.Faults.SetRates(rates)
	group, running := errgroup.WithContext(ctx)
	chaos, end := context.WithTimeout(running, r.Chaos)
	defer end()
	group.Go(func() error {
		_, err := r.service.Send(running, messages, time.Duration(sending*float64(r.Chaos)))
		return err
	})
	group.Go(func() error { return r.killAll(running, chaos) })
	group.Go(func() error {
		r.outage(chaos)
		return nil
	})
	group.Go(func() error {
		for pause.For(chaos, lookEvery) == nil {
			for _, t := range r.tenants {
				_ = t.follow(chaos) // what fails is read again
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	r.service.Faults.SetRates(nil)
	r.say("calm; kills:%s; %s", countsText(r.kills, " "), r.service.Faults.Counts())
	if err := r.restart(ctx, nil); err != nil {
		return err
	}
	_, err := r.service.Send(ctx, rest, 0)
	return err
}
