package sweeper

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// jobs is the recoveries, drains and deletions worked on at a time.
	jobs = 4
	// turn is the steps of a job that are done before it is the next one's
	// turn.
	turn = 4
	// grace is what a step may take beyond the end of its run, less than is
	// spared.
	grace = 4 * time.Second
)

// finishing bounds what has begun when a run ends, and should be brought to
// its end.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	unbounded := context.WithoutCancel(ctx)
	if deadline, limited := ctx.Deadline(); limited {
		return context.WithDeadline(unbounded, deadline.Add(grace))
	}
	return context.WithTimeout(unbounded, grace)
}

// job is work on an endpoint's rows that takes long.
type job struct {
	due  webhook.Due
	work work // nil until a run has taken it
}

// work is done step by step.
type work interface {
	// step does a piece of bounded size and tells whether there is more.
	step(ctx context.Context) (more bool, err error)
	// leave lets the next run go on at once.
	leave(ctx context.Context) error
}

// jobsOf are the jobs among the marks.
func jobsOf(due []webhook.Due) []*job {
	var found []*job
	for _, d := range due {
		if d.Kind == webhook.DueRecovery || d.Kind == webhook.DueDeletion {
			found = append(found, &job{due: d})
		}
	}
	return found
}

func byMark(a, b webhook.Due) int { return cmp.Compare(a.Mark, b.Mark) }

// jobs works on all jobs that no other run has taken, in turns, the longest
// due first, as far as time allows. What it could not begin stays the longest
// due for the next run.
func (s *Sweeper) jobs(ctx context.Context, waiting []*job) error {
	slices.SortStableFunc(waiting, func(a, b *job) int { return byMark(a.due, b.due) })
	t := &turns{waiting: waiting}
	var group errgroup.Group
	for range jobs {
		group.Go(func() (err error) {
			for j := t.next(ctx); j != nil; j = t.next(ctx) {
				more, workErr := s.turn(ctx, j)
				if workErr = s.failed(ctx, workErr, j.what()...); workErr != nil {
					err = workErr
				}
				if more {
					t.again(j)
				}
			}
			return err
		})
	}
	err := group.Wait()
	ctx, cancel := finishing(ctx)
	defer cancel()
	for _, j := range t.waiting {
		if j.work != nil {
			err = cmp.Or(s.failed(ctx, j.work.leave(ctx), j.what()...), err)
		}
	}
	return err
}

// what names a job in the log.
func (j *job) what() []any { return []any{"organizationId", j.due.OrganizationID, "job", j.due.ID} }

// turns are the jobs that wait for theirs.
type turns struct {
	mu      sync.Mutex
	waiting []*job
}

// next is the job whose turn it is; nil when there is none, or no time.
func (t *turns) next(ctx context.Context) *job {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 || ctx.Err() != nil {
		return nil
	}
	j := t.waiting[0]
	t.waiting = t.waiting[1:]
	return j
}

func (t *turns) again(j *job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, j)
}

// turn does some steps of a job. A step that has begun when time is up is
// finished.
func (s *Sweeper) turn(ctx context.Context, j *job) (more bool, err error) {
	if j.work == nil {
		if j.work, err = s.take(ctx, j.due); err != nil || j.work == nil {
			return false, err
		}
	}
	more = true
	for n := 0; more && err == nil && n < turn && ctx.Err() == nil; n++ {
		more, err = s.step(ctx, j.work)
	}
	return more && err == nil, err
}

// step does a step. Work that fails is the next run's to go on with.
func (s *Sweeper) step(ctx context.Context, w work) (more bool, err error) {
	ctx, cancel := finishing(ctx)
	defer cancel()
	if more, err = w.step(ctx); err != nil {
		err = errors.Join(err, w.leave(ctx))
	}
	return more, err
}

// take leases a job to this run; nil when another one has it, or when there
// is nothing to do.
func (s *Sweeper) take(ctx context.Context, d webhook.Due) (work, error) {
	moved, _, err := s.store.Postpone(ctx, d, value.TimeOf(s.cfg.Clock()).Add(jobLease))
	if err != nil || moved == nil {
		return nil, err
	}
	switch d.Kind {
	case webhook.DueCircuit:
		return &drain{sweeper: s, mark: *moved}, nil
	case webhook.DueDeletion:
		return &deletion{sweeper: s, mark: *moved}, nil
	}
	r, err := s.store.Recovery(ctx, d.OrganizationID, d.EndpointID, d.ID)
	if err != nil || r == nil {
		return nil, err
	}
	return &recovery{backlog: s.backlog, now: r}, nil
}

// release moves a mark that this run has taken back to the present.
func (s *Sweeper) release(ctx context.Context, mark webhook.Due) error {
	return s.postpone(ctx, mark, value.TimeOf(s.cfg.Clock()))
}
