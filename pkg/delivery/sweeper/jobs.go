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
	due webhook.Due
	// step does a bounded piece and reports whether there is more. It is nil until
	// this run has taken the job.
	step func(ctx context.Context) (more bool, err error)
	// release lets the next run continue at once.
	release func(ctx context.Context) error
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
		if j.step != nil {
			err = cmp.Or(s.failed(ctx, j.release(ctx), j.attributes()...), err)
		}
	}
	return err
}

// attributes name a job in the log.
func (j *job) attributes() []any {
	return []any{"organizationId", j.due.OrganizationID, "job", j.due.ID}
}

// someSteps does some steps of a job and reports whether there are more. A step
// that has begun when time is up is finished. A job that fails is released.
func (s *Sweeper) someSteps(ctx context.Context, j *job) (more bool, err error) {
	if j.step == nil {
		if err := s.take(ctx, j); err != nil || j.step == nil {
			return false, err
		}
	}
	step := func() (more bool, err error) {
		ctx, cancel := finishing(ctx)
		defer cancel()
		if more, err = j.step(ctx); err != nil {
			return false, errors.Join(err, j.release(ctx))
		}
		return more, nil
	}
	more = true
	for n := 0; more && n < maxSteps && ctx.Err() == nil; n++ {
		more, err = step()
	}
	return more, err
}

// take leases a job to this run, unless another one has it or there is nothing
// to do.
func (s *Sweeper) take(ctx context.Context, j *job) error {
	moved, _, err := s.store.Postpone(ctx, j.due, s.now().Add(jobLease))
	if err != nil || moved == nil {
		return err
	}
	j.release = func(ctx context.Context) error { return s.postpone(ctx, *moved, s.now()) }
	switch j.due.Kind {
	case webhook.DueCircuit:
		j.step = (&drain{Sweeper: s, mark: *moved}).step
	case webhook.DueDeletion:
		j.step = s.deletion(*moved)
	default:
		current, err := s.store.Recovery(ctx, moved.OrganizationID, moved.EndpointID, moved.ID)
		if err != nil || current == nil {
			return err
		}
		r := &recovery{backlog: s.backlog, current: current}
		j.step, j.release = r.step, r.release
	}
	return nil
}

// deletion cancels the deliveries of a deleted endpoint and then removes what
// is left of it.
func (s *Sweeper) deletion(mark webhook.Due) func(context.Context) (bool, error) {
	cursor := ""
	return func(ctx context.Context) (more bool, err error) {
		cursor, err = s.backlog.cancel(ctx, mark.OrganizationID, mark.ID, cursor)
		if err != nil || cursor != "" {
			return err == nil, err
		}
		return false, s.store.FinishEndpointDeletion(ctx, mark.OrganizationID, mark.ID)
	}
}
