package dynamo

import (
	"context"
	"fmt"
	"strings"

	"github.com/commerce-integration/service/pkg/base/retry"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
)

// JobShards is the number of partitions that jobs are spread over.
const JobShards = shards

// Attributes of a job. GSI1 has it under its due mark, the time at which it was
// or will be due. Moving the mark costs two write units, so it stays where that
// is right again within seconds: when a run takes the job, and when the next
// run is due at once.
const (
	attrAsked      = "asked"
	attrDue        = "due"
	attrLease      = "lease"
	attrHolder     = "holder"
	attrUnfinished = "unfinished"
)

// jobState is a job as it is stored; the zero value is no job.
type jobState struct {
	requests   int64
	due        value.Time // 0: it has not been requested since it was taken
	holder     uint64     // the run that has it; 0: none
	lease      value.Time // until when the holder has it
	marked     value.Time // its due mark
	unfinished int64      // as of index.Job
	token      uint64     // of the last write
}

// RequestJob requests a run of the list's job that starts at due or later, and
// after this call. The earlier of two times counts, but a stalled job keeps the
// time that it has.
func (t *IndexStore) RequestJob(ctx context.Context, org value.ID, list string, due value.Time) error {
	return t.changeJob(ctx, org, list, func(s jobState) (jobState, bool) {
		s.requests++
		if s.due == 0 || s.unfinished < index.MaxUnfinished {
			s.setDue(due)
		}
		if s.holder == 0 && (s.marked == 0 || s.due < s.marked) {
			s.marked = s.due
		}
		return s, true
	})
}

// setDue keeps the earlier of two times.
func (s *jobState) setDue(due value.Time) {
	if s.due == 0 || due < s.due {
		s.due = max(due, 1)
	}
}

// TakeJob takes the list's job until the given time. It returns nil when there
// is none, it is not due, or another run has it. Once the time is over another
// run may take it, so that the job of a run that died is done.
func (t *IndexStore) TakeJob(ctx context.Context, org value.ID, list string, until value.Time) (*index.Job, error) {
	holder := newToken()
	var taken *index.Job
	err := t.changeJob(ctx, org, list, func(s jobState) (jobState, bool) {
		if s.holder == holder {
			return s, false // taken before, but the answer was lost
		}
		taken = nil
		from := s.due
		if s.holder != 0 {
			from = s.lease
		}
		if s == (jobState{}) || from > value.TimeOf(t.now()) {
			return s, false
		}
		taken = &index.Job{OrganizationID: org, List: list, Requests: s.requests, Holder: holder, Unfinished: s.unfinished}
		s.holder, s.lease, s.due = holder, until, 0
		return s, true
	})
	return taken, err
}

// EndJob gives the job back, to run again at next, or because it was requested
// meanwhile, and reports whether that is due now; otherwise it deletes the job.
// A stalled job runs at next whatever was requested. When the lease is over and
// another run has taken the job, or it was released, nothing happens.
func (t *IndexStore) EndJob(ctx context.Context, j *index.Job, next *value.Time) (due bool, err error) {
	err = t.changeJob(ctx, j.OrganizationID, j.List, func(s jobState) (jobState, bool) {
		due = false
		switch {
		case s.holder != j.Holder:
			return s, false
		case next != nil && j.Stalled():
			s.due = *next
		case next != nil:
			s.setDue(*next)
		case s.requests == j.Requests:
			return jobState{}, true
		}
		s.holder, s.lease, s.unfinished = 0, 0, j.Unfinished
		if due = s.due <= value.TimeOf(t.now()); !due {
			s.marked = s.due
		}
		return s, true
	})
	return due && err == nil, err
}

// ReleaseJob lets a stalled job run at once, and as often as any other. A run
// that is under way no longer has it.
func (t *IndexStore) ReleaseJob(ctx context.Context, org value.ID, list string) error {
	return t.changeJob(ctx, org, list, func(s jobState) (jobState, bool) {
		if s.unfinished < index.MaxUnfinished {
			return s, false
		}
		now := value.TimeOf(t.now())
		s.holder, s.lease, s.unfinished, s.due, s.marked = 0, 0, 0, now, now
		return s, true
	})
}

// DueJobs lists up to limit jobs of a shard that are due by now, the longest due
// first, without Requests. Some may be taken already: GSI1 is behind the table
// for a moment, and does not show that.
func (t *IndexStore) DueJobs(ctx context.Context, shard int, now value.Time, limit int) ([]index.Job, error) {
	return collect(ctx, t.db, timed(jobShard(shard), behind(""), (now+1).String(), limit), limit, decodeDueJob)
}

func decodeDueJob(it item) (index.Job, error) {
	pk := getString(it, attrPK)
	parts := strings.SplitN(pk, "#", 3)
	if len(parts) < 3 {
		return index.Job{}, fmt.Errorf("a job of the unknown list %q", pk)
	}
	org, err := value.ParseID(parts[1])
	if err != nil {
		return index.Job{}, fmt.Errorf("a job of the list %q: %w", pk, err)
	}
	return index.Job{OrganizationID: org, List: parts[2]}, nil
}

// changeJob stores the state that change makes of the list's job, unless it
// reports no change. It is called again, with the present state, when another
// writer was faster.
func (t *IndexStore) changeJob(ctx context.Context, org value.ID, list string, change func(jobState) (next jobState, changed bool)) error {
	err := retry.Contended(ctx, contendedAttempts, func() (done bool, err error) {
		s, err := read(ctx, t.db, jobKey(org, list), decodeJob)
		if err != nil {
			return false, err
		}
		next, changed := change(s)
		if !changed {
			return true, nil
		}
		return t.replaceJob(ctx, org, list, s.token, next)
	})
	if err != nil {
		return fmt.Errorf("change the job of %s: %w", list, err)
	}
	return nil
}

// replaceJob writes the next state, or deletes the job when that is the zero
// state, if the job's last write has the token; 0 means that there is no job.
func (t *IndexStore) replaceJob(ctx context.Context, org value.ID, list string, token uint64, next jobState) (done bool, err error) {
	condition, values := ifToken(token)
	if next == (jobState{}) {
		_, done, err = t.removeItem(ctx, "delete a job", t.remove(jobKey(org, list), condition, values))
		return done, err
	}
	_, done, err = t.putOnce(ctx, "put a job", encodeJob(org, list, next), newToken(), condition, values)
	return done, err
}

func encodeJob(org value.ID, list string, s jobState) item {
	it := jobKey(org, list).newItem(typeJob)
	it[attrAsked] = num(s.requests)
	if s.due != 0 {
		it[attrDue] = num(int64(s.due))
	}
	if s.holder != 0 {
		it[attrHolder], it[attrLease] = unsigned(s.holder), num(int64(s.lease))
	}
	if s.unfinished != 0 {
		it[attrUnfinished] = num(s.unfinished)
	}
	it[attrGSI1PK], it[attrGSI1SK] = str(jobPartition(org, list)), str(jobSort(s.marked, org, list))
	return it
}

// decodeJob returns the zero state for no item.
func decodeJob(it item) (s jobState, err error) {
	if it == nil {
		return s, nil
	}
	s = jobState{
		requests: getNumber(it, attrAsked), due: value.Time(getNumber(it, attrDue)),
		holder: getUnsigned(it, attrHolder), lease: value.Time(getNumber(it, attrLease)), token: getUnsigned(it, attrToken),
		unfinished: getNumber(it, attrUnfinished),
	}
	sort := getString(it, attrGSI1SK)
	at, _, _ := strings.Cut(sort, "#")
	if s.marked, err = value.ParseTime(at); err != nil {
		return s, fmt.Errorf("decode the job of %s: its due mark %q %w", getString(it, attrPK), sort, err)
	}
	return s, nil
}
