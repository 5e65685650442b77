package dynamo

import (
	"context"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
)

// jobState is a job as it is stored; the zero value means none. GSI1 has it under
// its due mark, the time at which it was or will be due. Moving the mark costs
// two write units, so it stays where that is right again within seconds: when a
// run takes the job, and when the next run is due at once.
type jobState struct {
	Requests   int64      `dynamodbav:"asked"`
	Due        value.Time `dynamodbav:"due,omitempty"`        // 0: it has not been requested since it was taken
	Holder     uint64     `dynamodbav:"holder,omitempty"`     // the run that has it; 0: none
	Lease      value.Time `dynamodbav:"lease,omitempty"`      // until when the holder has it
	Unfinished int64      `dynamodbav:"unfinished,omitempty"` // as of index.Job
	Marked     value.Time `dynamodbav:"marked,omitempty"`     // its due mark
}

// RequestJob requests a run of the list's job that starts at due or later, and
// after this call. The earlier of two times counts, but a stalled job keeps the
// time that it has.
func (t *Table) RequestJob(ctx context.Context, org value.ID, list string, due value.Time) error {
	return t.changeJob(ctx, org, list, func(s *jobState) (changed bool) {
		s.Requests++
		if s.Due == 0 || s.Unfinished < index.MaxUnfinished {
			s.setDue(due)
		}
		if s.Holder == 0 && (s.Marked == 0 || s.Due < s.Marked) {
			s.Marked = s.Due
		}
		return true
	})
}

// setDue keeps the earlier of two times.
func (s *jobState) setDue(due value.Time) {
	if s.Due == 0 || due < s.Due {
		s.Due = max(due, 1)
	}
}

// TakeJob takes the list's job until the given time. It returns nil when there
// is none, it is not due, or another run has it. Once the time is over another
// run may take it, so that the job of a run that died is done.
func (t *Table) TakeJob(ctx context.Context, org value.ID, list string, until value.Time) (*index.Job, error) {
	holder := newToken()
	var taken *index.Job
	err := t.changeJob(ctx, org, list, func(s *jobState) (changed bool) {
		if s.Holder == holder {
			return false // taken before, but the answer was lost
		}
		taken = nil
		from := s.Due
		if s.Holder != 0 {
			from = s.Lease
		}
		if *s == (jobState{}) || from > value.TimeOf(t.now()) {
			return false
		}
		taken = &index.Job{OrganizationID: org, List: list, Requests: s.Requests, Holder: holder, Unfinished: s.Unfinished}
		s.Holder, s.Lease, s.Due = holder, until, 0
		return true
	})
	return taken, err
}

// EndJob gives the job back, to run again at next, or because it was requested
// meanwhile, and reports whether that is due now; otherwise it deletes the job.
// A stalled job runs at next whatever was requested. When the lease is over and
// another run has taken the job, or it was released, nothing happens.
func (t *Table) EndJob(ctx context.Context, j *index.Job, next *value.Time) (due bool, err error) {
	err = t.changeJob(ctx, j.OrganizationID, j.List, func(s *jobState) (changed bool) {
		due = false
		switch {
		case s.Holder != j.Holder:
			return false
		case next != nil && j.Stalled():
			s.Due = *next
		case next != nil:
			s.setDue(*next)
		case s.Requests == j.Requests:
			*s = jobState{}
			return true
		}
		s.Holder, s.Lease, s.Unfinished = 0, 0, j.Unfinished
		if due = s.Due <= value.TimeOf(t.now()); !due {
			s.Marked = s.Due
		}
		return true
	})
	return due && err == nil, err
}

// ReleaseJob lets a stalled job run at once, and as often as any other. A run
// that is under way no longer has it.
func (t *Table) ReleaseJob(ctx context.Context, org value.ID, list string) error {
	return t.changeJob(ctx, org, list, func(s *jobState) (changed bool) {
		if s.Unfinished < index.MaxUnfinished {
			return false
		}
		now := value.TimeOf(t.now())
		s.Holder, s.Lease, s.Unfinished, s.Due, s.Marked = 0, 0, 0, now, now
		return true
	})
}

// DueJobs lists up to limit jobs of a shard that are due by now, the longest due
// first, without Requests. Some may be taken already: GSI1 is behind the table
// for a moment, and does not show that.
func (t *Table) DueJobs(ctx context.Context, shard int, now value.Time, limit int) ([]index.Job, error) {
	return collect(ctx, t, timed(jobShard(shard), behind(""), (now+1).String(), limit), limit, decodeDueJob)
}

func decodeDueJob(it item) (index.Job, error) {
	org, list, err := ownerOf(getString(it, attrPK), "IDX#")
	return index.Job{OrganizationID: org, List: list}, err
}

// changeJob stores what change makes of the list's job, or deletes it when that is
// the zero state, unless change reports that it stays.
func (t *Table) changeJob(ctx context.Context, org value.ID, list string, change func(*jobState) (changed bool)) error {
	k := jobKey(org, list)
	return modify(ctx, t, k, decode, change, func(next *jobState, token uint64) (done bool, err error) {
		ifUnchanged := ifLast(attrToken, token)
		if *next == (jobState{}) {
			_, done, err = t.removeItem(ctx, "delete a job", t.remove(k, ifUnchanged))
			return done, err
		}
		it := encode(k, typeJob, next)
		it[attrGSI1PK], it[attrGSI1SK] = str(jobPartition(org, list)), str(timedSort(next.Marked, org)+"#"+list)
		_, done, err = t.putOnce(ctx, "put a job", it, newToken(), ifUnchanged)
		return done, err
	})
}
