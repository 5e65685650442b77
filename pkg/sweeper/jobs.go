package sweeper

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	maxJobs = 4 // recoveries, drains and deletions worked on at a time
	// maxSteps is the steps of a job that are done before the next job's.
	maxSteps = 4
)

// job is work on an endpoint's deliveries that takes many steps.
type job struct {
	due  webhook.Due
	work work // nil until a run has taken it
}

// work is done step by step.
type work interface {
	// step does a bounded piece and tells whether there is more.
	step(ctx context.Context) (more bool, err error)
	// release lets the next run continue at once.
	release(ctx context.Context) error
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

// runJobs works on all jobs that no other run has taken, a few steps of each
// and then of the next, the longest due first, as far as time allows. Jobs that
// it could not begin are the longest due in the next run.
func (s *Sweeper) runJobs(ctx context.Context, jobs []*job) error {
	slices.SortStableFunc(jobs, func(a, b *job) int { return byMark(a.due, b.due) })
	waiting := make(chan *job, len(jobs))
	for _, j := range jobs {
		waiting <- j
	}
	var group errgroup.Group
	for range maxJobs {
		group.Go(func() (err error) {
			for ctx.Err() == nil {
				select {
				case j := <-waiting:
					more, jobErr := s.someSteps(ctx, j)
					err = cmp.Or(s.failed(ctx, jobErr, j.attributes()...), err)
					if more {
						waiting <- j
					}
				default:
					return err
				}
			}
			return err
		})
	}
	err := group.Wait()
	close(waiting)
	ctx, cancel := finishing(ctx)
	defer cancel()
	for j := range waiting {
		if j.work != nil {
			err = cmp.Or(s.failed(ctx, j.work.release(ctx), j.attributes()...), err)
		}
	}
	return err
}

// attributes name a job in the log.
func (j *job) attributes() []any {
	return []any{"organizationId", j.due.OrganizationID, "job", j.due.ID}
}

// someSteps does some steps of a job and tells whether there are more. A step
// that has begun when time is up is finished. A job that fails is released.
func (s *Sweeper) someSteps(ctx context.Context, j *job) (more bool, err error) {
	if j.work == nil {
		if j.work, err = s.take(ctx, j.due); err != nil || j.work == nil {
			return false, err
		}
	}
	step := func() (more bool, err error) {
		ctx, cancel := finishing(ctx)
		defer cancel()
		if more, err = j.work.step(ctx); err != nil {
			return false, errors.Join(err, j.work.release(ctx))
		}
		return more, nil
	}
	more = true
	for n := 0; more && n < maxSteps && ctx.Err() == nil; n++ {
		more, err = step()
	}
	return more, err
}

// take leases a job to this run; nil when another one has it, or when there
// is nothing to do.
func (s *Sweeper) take(ctx context.Context, d webhook.Due) (work, error) {
	moved, _, err := s.store.Postpone(ctx, d, s.now().Add(jobLease))
	if err != nil || moved == nil {
		return nil, err
	}
	switch d.Kind {
	case webhook.DueCircuit:
		return &drain{leased: leased{s, *moved}}, nil
	case webhook.DueDeletion:
		return &deletion{leased: leased{s, *moved}}, nil
	}
	r, err := s.store.Recovery(ctx, d.OrganizationID, d.EndpointID, d.ID)
	if err != nil || r == nil {
		return nil, err
	}
	return &recovery{backlog: s.backlog, current: r}, nil
}

// leased is a job whose due mark this run has moved ahead.
type leased struct {
	*Sweeper
	mark webhook.Due
}

func (l leased) release(ctx context.Context) error { return l.postpone(ctx, l.mark, l.now()) }
