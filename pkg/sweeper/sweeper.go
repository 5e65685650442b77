// Package sweeper does what time brings: once a minute it sends the deliveries
// whose attempt comes near, probes open circuits and drains those that
// closed, starts the index jobs that are due, goes on with recoveries, and
// cancels the rows of deleted endpoints; in between it does the index jobs
// that were started. Every step is safe to repeat and leaves a mark for the
// next run before it acts, so that a run that dies loses nothing; a run ends
// within the time it is given and leaves the rest to the next, and what one
// organization has to be done does not stand before the others'. Attempts are
// left to the worker, and what an index job does to the maintainer.
package sweeper

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// horizon is how far ahead a run looks: to the next one.
	horizon = time.Minute
	shards  = 4  // due partitions worked on at a time
	writers = 16 // items written at a time, of each page or job
	// jobLease is for how long a job is left to the run that took it, longer
	// than a run takes.
	jobLease = time.Minute
	// spare is left of the time for what is under way, and budget is the time
	// of a run that is given none.
	spare  = 5 * time.Second
	budget = 50 * time.Second
)

// Marks finds due marks and moves them. Postpone returns the mark as it is
// then, nil when it no longer stood as it was found.
type Marks interface {
	Due(ctx context.Context, shard int, after string, before value.Time, limit int) ([]webhook.Due, error)
	Postpone(ctx context.Context, d webhook.Due, until value.Time) (moved *webhook.Due, row *webhook.Delivery, err error)
	FinishEndpointDeletion(ctx context.Context, org, id value.ID) error
}

// Store is what a sweeper keeps its state in.
type Store interface {
	Marks
	BacklogStore
	Applications
	DueIndexJobs
}

// Queue sends messages to the worker, in the lane that the endpoint takes.
type Queue interface {
	Send(ctx context.Context, lane webhook.Lane, now value.Time, rows ...*webhook.Delivery) error
}

// Config adapts a sweeper. Its zero value is the service's own.
type Config struct {
	Clock  func() time.Time
	Logger *slog.Logger
}

// Index is where index jobs are started, and who does them.
type IndexCompaction struct {
	IndexQueue
	Maintainer
}

// Sweeper runs once a minute, and for each index job. Runs may overlap.
type Sweeper struct {
	store   Store
	queue   Queue
	index   IndexCompaction
	backlog *Backlog
	cfg     Config
}

// New returns a sweeper.
func New(store Store, q Queue, index IndexCompaction, cfg Config) *Sweeper {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Sweeper{store: store, queue: q, index: index, backlog: NewBacklog(store, q, cfg.Clock), cfg: cfg}
}

// sweep is the run of a minute: deliveries first, then probes, then what takes
// long. An error is logged where it occurs and does not stop the rest; the
// last one is returned.
func (s *Sweeper) sweep(ctx context.Context) error {
	found := &findings{}
	var group errgroup.Group
	group.Go(func() error { return s.startAllIndexJobs(ctx, found) })
	group.Go(func() error {
		others, err := s.rows(ctx, found)
		drains, circuitErr := s.circuits(ctx, others, found)
		if circuitErr != nil {
			err = circuitErr
		}
		jobs := append(jobsOf(others), drains...)
		found.add(&found.jobs, len(jobs))
		if jobErr := s.jobs(ctx, jobs); jobErr != nil {
			err = jobErr
		}
		return err
	})
	err := group.Wait()
	s.cfg.Logger.InfoContext(ctx, "swept", "sent", found.sent, "probes", found.probes,
		"jobs", found.jobs, "indexJobs", found.indexJobs)
	return err
}

// startAllIndexJobs starts the index jobs that are due.
func (s *Sweeper) startAllIndexJobs(ctx context.Context, found *findings) error {
	var group errgroup.Group
	group.SetLimit(shards)
	for shard := range dynamo.JobShards {
		group.Go(func() error {
			return s.failed(ctx, s.startIndexJobs(ctx, shard, found), "indexJobShard", shard)
		})
	}
	return group.Wait()
}

// within bounds a run a little tighter than its function.
func (s *Sweeper) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, limited := ctx.Deadline(); limited {
		return context.WithDeadline(ctx, deadline.Add(-spare))
	}
	return context.WithTimeout(ctx, budget)
}

// failed logs an error and returns it. That time is up is no error: the next
// run goes on.
func (s *Sweeper) failed(ctx context.Context, err error, what ...any) error {
	switch {
	case err == nil:
	case ctx.Err() != nil:
		s.cfg.Logger.WarnContext(ctx, "a run ended with work left", what...)
		err = nil
	default:
		s.cfg.Logger.ErrorContext(ctx, "sweeping failed", append(what, "error", err)...)
	}
	return err
}

// findings are what a run came upon.
type findings struct {
	mu        sync.Mutex
	sent      int
	probes    int
	jobs      int
	indexJobs int
}

func (f *findings) add(to *int, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*to += n
}
