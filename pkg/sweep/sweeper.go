// Package sweep does what time brings: once a minute it sends the deliveries
// whose attempt comes near, starts the index jobs that are due, goes on with
// recoveries, and cancels the rows of deleted endpoints; in between it does
// the index jobs that were started. Every step is safe to repeat and leaves a
// mark for the next run before it acts, so that a run that dies loses
// nothing; a run ends within the time it is given and leaves the rest to the
// next. Attempts are left to the worker, and what an index job does to the
// maintainer.
package sweep

import (
	"context"
	"log/slog"
	"slices"
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
	// pageSize is the due marks that are read at a time.
	pageSize = 100
	shards   = 4  // due partitions worked on at a time
	writers  = 16 // rows written at a time, of each partition or job
	jobs     = 4  // recoveries and deletions worked on at a time
	// jobLease is for how long a job is left to the run that took it.
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
	Postpone(ctx context.Context, d webhook.Due, until value.Time) (moved *webhook.Due, row *webhook.Row, err error)
	ForgetEndpoint(ctx context.Context, org, id value.ID) error
}

// Store is what a sweeper keeps its state in.
type Store interface {
	Marks
	BacklogStore
	DueIndexJobs
}

// Queue sends messages to the worker.
type Queue interface {
	SendRows(ctx context.Context, now value.Time, rows ...*webhook.Row) error
}

// Config adapts a sweeper. Its zero value is the service's own.
type Config struct {
	Clock  func() time.Time
	Logger *slog.Logger
}

// Index is where index jobs are started, and who does them.
type Index struct {
	IndexQueue
	Maintainer
}

// Sweeper runs once a minute, and for each index job. Runs may overlap.
type Sweeper struct {
	store   Store
	queue   Queue
	index   Index
	backlog *Backlog
	cfg     Config
}

// New returns a sweeper.
func New(store Store, q Queue, index Index, cfg Config) *Sweeper {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Sweeper{store: store, queue: q, index: index, backlog: NewBacklog(store, q, cfg.Clock), cfg: cfg}
}

// sweep is the run of a minute. An error is logged where it occurs and does
// not stop the rest; the last one is returned.
func (s *Sweeper) sweep(ctx context.Context) error {
	found := &findings{}
	var group errgroup.Group
	group.SetLimit(shards)
	for shard := range dynamo.DueShards {
		group.Go(func() error {
			return s.failed(ctx, s.shard(ctx, shard, found), "shard", shard)
		})
	}
	for shard := range dynamo.JobShards {
		group.Go(func() error {
			return s.failed(ctx, s.startIndexJobs(ctx, shard, found), "indexJobShard", shard)
		})
	}
	err := group.Wait()
	if jobErr := s.jobs(ctx, found.jobs); jobErr != nil {
		err = jobErr
	}
	s.cfg.Logger.InfoContext(ctx, "swept", "sent", found.sent, "jobs", len(found.jobs), "indexJobs", found.indexJobs)
	return err
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

// findings are what the shards of a run came upon.
type findings struct {
	mu        sync.Mutex
	sent      int
	jobs      []webhook.Due
	indexJobs int
}

// shard sends the deliveries of one due partition.
func (s *Sweeper) shard(ctx context.Context, shard int, found *findings) error {
	for after := ""; ; {
		now := value.TimeOf(s.cfg.Clock())
		page, err := s.store.Due(ctx, shard, after, now.Add(horizon), pageSize)
		if err != nil || len(page) == 0 {
			return err
		}
		after = page[len(page)-1].Mark
		var rows, others []webhook.Due
		for _, d := range page {
			switch {
			case d.Kind == webhook.DueRow:
				rows = append(rows, d)
			case d.Mark < now.String()+"~": // a job has no use for being early
				others = append(others, d)
			}
		}
		sent, err := s.send(ctx, rows, now)
		if err != nil {
			return err
		}
		found.mu.Lock()
		found.sent += sent
		found.jobs = append(found.jobs, others...)
		found.mu.Unlock()
	}
}

// send moves the marks of rows ahead by the lease and then sends their
// messages, each for its time. Should the sending fail, the mark brings the
// row again.
func (s *Sweeper) send(ctx context.Context, due []webhook.Due, now value.Time) (int, error) {
	rows := make([]*webhook.Row, len(due))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i, d := range due {
		group.Go(func() (err error) {
			rows[i], err = s.lease(inner, d, now)
			return err
		})
	}
	postponed := group.Wait()
	pending := slices.DeleteFunc(rows, func(r *webhook.Row) bool { return r == nil || !r.Pending() })
	if err := s.queue.SendRows(ctx, now, pending...); err != nil {
		return 0, err
	}
	return len(pending), postponed
}

// lease moves a row's mark ahead and returns the row; nil when another run
// has it. A row that is late already was sent before and most likely waits in
// the queue: its lease grows with its lateness, so that a long queue does not
// fill with messages of the same rows.
func (s *Sweeper) lease(ctx context.Context, d webhook.Due, now value.Time) (*webhook.Row, error) {
	moved, row, err := s.store.Postpone(ctx, d, now.Add(webhook.Lease))
	if err != nil || row == nil || row.NextAttemptAt == nil {
		return nil, err
	}
	if late := now.Std().Sub(row.NextAttemptAt.Std()); late > webhook.Lease {
		_, _, err = s.store.Postpone(ctx, *moved, now.Add(late))
	}
	return row, err
}

// jobs takes each job that no other run has taken, and works on it as far as
// time allows.
func (s *Sweeper) jobs(ctx context.Context, due []webhook.Due) error {
	var group errgroup.Group
	group.SetLimit(jobs)
	for _, d := range due {
		group.Go(func() error {
			taken, _, err := s.store.Postpone(ctx, d, value.TimeOf(s.cfg.Clock()).Add(jobLease))
			if err == nil && taken != nil {
				err = s.job(ctx, d)
			}
			return s.failed(ctx, err, "organizationId", d.OrganizationID, "job", d.ID)
		})
	}
	return group.Wait()
}

func (s *Sweeper) job(ctx context.Context, d webhook.Due) error {
	if d.Kind == webhook.DueDeletion {
		if err := s.backlog.Cancel(ctx, d.OrganizationID, d.ID, everything); err != nil {
			return err
		}
		return s.store.ForgetEndpoint(ctx, d.OrganizationID, d.ID)
	}
	r, err := s.backlog.store.Recovery(ctx, d.OrganizationID, d.EndpointID, d.ID)
	if err != nil || r == nil {
		return err
	}
	_, err = s.backlog.Recover(ctx, r, everything)
	return err
}
