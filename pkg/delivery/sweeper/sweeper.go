// Package sweeper does due work. Once a minute it sends the deliveries whose
// next attempt is near, probes open circuits, drains circuits that closed,
// continues recoveries, cancels the deliveries of deleted endpoints, starts
// index jobs, and writes the heartbeat that alarms on a stream that stands still
// go by; between those runs it works on the index jobs that were started.
//
// Every step may be repeated, and moves its due mark ahead before it acts: when
// a run dies, a later one finds the mark again. A run takes at most the 5,000
// oldest due marks of each of 16 partitions, and among these one organization's
// deliveries cannot delay another's. It ends before its function's time is up, and
// leaves the rest to the next one. The worker makes the attempts, and a compactor
// does what an index job asks for.
package sweeper

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/deadline"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// dueWithin is how far ahead a run looks: to the next one.
	dueWithin     = time.Minute
	maxPartitions = 4  // due partitions read at a time
	maxWrites     = 16 // items written at a time, of each page or job
	// jobLease is for how long a job is left to the run that took it, longer
	// than a run takes.
	jobLease = time.Minute
	// shutdownMargin is when a run ends before its function's time is up. A step
	// that has begun by then may take finishTime longer.
	shutdownMargin = 5 * time.Second
	finishTime     = 4 * time.Second
)

// Store keeps what the sweeper looks at.
type Store interface {
	BacklogStore
	Due(ctx context.Context, shard int, after string, before value.Time, limit int) ([]webhook.Due, error)
	// Postpone moves a due mark and returns it as it is then, nil when it was no
	// longer as it was found.
	Postpone(ctx context.Context, d webhook.Due, until value.Time) (moved *webhook.Due, delivery *webhook.Delivery, err error)
	Tally(ctx context.Context, org, endpoint value.ID) (*webhook.Tally, error)
	FinishEndpointDeletion(ctx context.Context, org, id value.ID) error
	Application(ctx context.Context, org, id value.ID) (*account.Application, error)
	// Beat writes the heartbeat that the stream's consumers get.
	Beat(ctx context.Context, now value.Time) error
	// DueJobs finds the index jobs that are due, the longest due first.
	DueJobs(ctx context.Context, shard int, now value.Time, limit int) ([]index.Job, error)
}

// Queue sends messages to the worker, in the lane of the endpoint.
type Queue interface {
	Send(ctx context.Context, lane webhook.Lane, now value.Time, deliveries ...*webhook.Delivery) error
}

// Sweeper runs once a minute, and for each index job. Runs may overlap.
type Sweeper struct {
	store   Store
	queue   Queue
	index   IndexCompaction
	backlog *Backlog
	clock   func() time.Time
	logger  *slog.Logger
}

// New returns a sweeper.
func New(store Store, q Queue, index IndexCompaction, clock func() time.Time, logger *slog.Logger) *Sweeper {
	return &Sweeper{store: store, queue: q, index: index, backlog: NewBacklog(store, q, clock), clock: clock, logger: logger}
}

// Event invokes the function: messages of the index jobs' queue, or the event
// of the schedule, which has none.
type Event struct {
	Records []events.SQSMessage `json:"Records"`
}

// Handle is one invocation. The schedule gets no answer; that to messages names
// those which the queue has to deliver again.
func (s *Sweeper) Handle(ctx context.Context, event Event) (*events.SQSEventResponse, error) {
	ctx, cancel := deadline.Before(ctx, shutdownMargin)
	defer cancel()
	if len(event.Records) == 0 {
		return nil, s.sweep(ctx)
	}
	return s.runIndexJobs(ctx, event.Records), nil
}

// sweep is the run of a minute: deliveries first, then probes, then the jobs,
// which take long. An error is logged where it occurs and does not stop the
// rest; the last one is returned.
func (s *Sweeper) sweep(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { return s.failed(ctx, s.store.Beat(ctx, s.now()), "step", "heartbeat") })
	group.Go(func() error { return s.startIndexJobs(ctx) })
	group.Go(func() error {
		others, err := s.sendDue(ctx)
		jobs, circuitErr := s.circuits(ctx, others)
		for _, d := range others {
			if d.Kind == webhook.DueRecovery || d.Kind == webhook.DueDeletion {
				jobs = append(jobs, &job{due: d})
			}
		}
		return cmp.Or(s.runJobs(ctx, jobs), circuitErr, err)
	})
	err := group.Wait()
	s.logger.InfoContext(ctx, "swept") // an alarm counts these
	return err
}

func (s *Sweeper) now() value.Time { return value.TimeOf(s.clock()) }

// failed logs an error and returns it. Running out of time is not an error: the
// next run continues.
func (s *Sweeper) failed(ctx context.Context, err error, what ...any) error {
	switch {
	case err == nil:
	case ctx.Err() != nil:
		s.logger.WarnContext(ctx, "a run ended with work left", what...)
		err = nil
	default:
		s.logger.ErrorContext(ctx, "sweeping failed", append(what, "error", err)...)
	}
	return err
}

// finishing is the context of a step that has begun and should be finished
// though the run's time may be up.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	return deadline.Finish(ctx, -finishTime, time.Minute)
}

// eachPartition reads all partitions, a few at a time.
func eachPartition(read func(shard int) error) error {
	var group errgroup.Group
	group.SetLimit(maxPartitions)
	for shard := range dynamo.Shards {
		group.Go(func() error { return read(shard) })
	}
	return group.Wait()
}
