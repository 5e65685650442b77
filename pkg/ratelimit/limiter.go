// Package ratelimit admits requests per subject (an application, or a user)
// over any number of instances that share a table. It promises that no 60 s
// hold more admissions than the limit, as long as the instances' clocks differ
// by less than 0.6 s; that an instance which met a refusal asks the table no
// more until the window allows; and that an admission from a lease costs no
// input or output and no memory. Who the subject is and what its limit is are
// left to the caller, where the window is kept to the store.
package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/httpapi"
	"github.com/commerce-integration/service/pkg/ratelimit/window"
)

// Store keeps the window of each subject. Both methods return the window as
// it is afterwards, whether they wrote or not; its version is 0 when there is
// none.
type Store interface {
	// ExtendWindow makes the extension if the window's head still is the
	// extension's and the total keeps to the limit.
	ExtendWindow(ctx context.Context, subject string, e window.Extension) (current window.Window, written bool, err error)
	// ReplaceWindow writes next if the window's version still is the given
	// one, 0 meaning that there is no window.
	ReplaceWindow(ctx context.Context, subject string, version int64, next window.Window) (current window.Window, written bool, err error)
}

const (
	// leaseShare is the part of the limit that one lease takes at most.
	leaseShare = 100
	// giveBack is how many buckets later unused admissions can be given
	// back: well inside of the window, so that what is given back is there.
	giveBack = 30
	// attempts bounds the writes of one lease. Instances that roll the head
	// at the same time need two or three.
	attempts = 10
	// maxSubjects is how many subjects each of two generations holds.
	maxSubjects = 5_000
)

// Limiter implements [rest.Limiter]. It is safe for concurrent use.
//
// When the table does not answer, Admit fails and with it the request: the
// request needs the same table, so admitting it unseen would break the limit
// and help nobody.
type Limiter struct {
	store Store
	now   func() time.Time

	mu         sync.Mutex
	young, old map[string]*subject
}

// New makes a limiter whose state is kept in the store.
func New(store Store, now func() time.Time) *Limiter {
	return &Limiter{store: store, now: now, young: map[string]*subject{}}
}

// subject is what this instance knows of a subject, guarded by lock.
type subject struct {
	lock chan struct{} // holds one element while locked, so that waiting can end

	window window.Window // as last seen
	shared bool          // somebody else wrote it before that

	bucket   int64 // current, or the window's head when that is a little ahead
	used     int64 // admitted in bucket
	previous int64 // admitted in the bucket before
	left     int64 // leased in bucket and not used
	unused   int64 // leased in from and not used, to be given back
	from     int64

	limit        int       // that the rest was computed for
	refusedUntil time.Time // zero when not refused
}

// Admit implements [rest.Limiter]: it counts one request of the subject
// against the limit of requests per 60 s.
func (l *Limiter) Admit(ctx context.Context, id string, limit int) (httpapi.Decision, error) {
	s := l.subject(id)
	select {
	case s.lock <- struct{}{}:
	case <-ctx.Done():
		return httpapi.Decision{}, fmt.Errorf("wait for the rate limit: %w", ctx.Err())
	}
	defer func() { <-s.lock }()
	now := l.now()
	s.moveTo(window.At(now))
	if s.limit != limit {
		s.limit, s.refusedUntil = limit, time.Time{}
	}
	if now.Before(s.refusedUntil) {
		return s.refuse(now), nil
	}
	if s.left == 0 {
		if err := l.lease(ctx, id, s); err != nil {
			return httpapi.Decision{}, err
		}
	}
	if s.left == 0 {
		s.refusedUntil = s.window.FreeAt(int64(limit))
		if !s.refusedUntil.After(now) {
			s.refusedUntil = now.Add(window.Width)
		}
		return s.refuse(now), nil
	}
	s.left--
	s.used++
	return httpapi.Decision{Allowed: true, Limit: limit, Remaining: s.remaining(), Reset: wholeSecond(s.window.OldestLeaves())}, nil
}

func (l *Limiter) subject(id string) *subject {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.young[id]
	if s != nil {
		return s
	}
	if s = l.old[id]; s == nil {
		s = &subject{lock: make(chan struct{}, 1)}
	}
	if len(l.young) >= maxSubjects {
		l.old, l.young = l.young, map[string]*subject{}
	}
	l.young[id] = s
	return s
}

// moveTo ends the lease of an older bucket: what is left of it can only be
// given back.
func (s *subject) moveTo(bucket int64) {
	if bucket < s.bucket-window.MaxAhead {
		// The clock was set back: what was computed with it is worth nothing.
		s.left, s.unused, s.used, s.previous, s.refusedUntil, s.bucket = 0, 0, 0, 0, time.Time{}, bucket
	}
	if bucket <= s.bucket {
		return
	}
	s.previous = 0
	if bucket == s.bucket+1 {
		s.previous = s.used
	}
	s.used = 0
	if s.left > 0 {
		s.unused, s.from, s.left = s.left, s.bucket, 0
	}
	if bucket-s.from > giveBack {
		s.unused = 0
	}
	s.bucket = bucket
}

func (s *subject) refuse(now time.Time) httpapi.Decision {
	return httpapi.Decision{
		Limit: s.limit, Remaining: 0, Reset: wholeSecond(s.refusedUntil), RetryAfter: s.refusedUntil.Sub(now),
	}
}

// remaining counts what the table has left and what this instance holds.
func (s *subject) remaining() int {
	return int(max(0, int64(s.limit)-s.window.Total+s.left+s.unused))
}

// wholeSecond rounds up, so that who waits until then does not come early.
func wholeSecond(t time.Time) time.Time {
	return t.Add(time.Second - time.Nanosecond).Truncate(time.Second)
}

// want is the size of the next lease: what the instance used in its last
// second, at least 1 and at most 1% of the limit.
func (s *subject) want() int64 {
	return max(1, min(max(s.previous, s.used), int64(s.limit)/leaseShare))
}

var errContended = errors.New("ratelimit: too many others write the window")

// lease takes admissions for the current bucket from the table, by one write
// in most cases: the window is known from the last write, or it comes back
// with a write that failed. It leaves s.left at 0 when the limit is reached.
func (l *Limiter) lease(ctx context.Context, id string, s *subject) error {
	want := s.want()
	for attempt := range attempts {
		if head := s.window.Head; head > s.bucket && head <= s.bucket+window.MaxAhead {
			s.bucket = head
		}
		// When others write the window as well, the head has probably been
		// moved to the current bucket already.
		blind := attempt == 0 && (s.shared || s.window.Version == 0)
		var granted bool
		var err error
		if blind || s.window.Version != 0 && s.window.Head == s.bucket {
			granted, err = l.extend(ctx, id, s, want, blind)
		} else {
			granted, err = l.replace(ctx, id, s, want)
		}
		if err != nil {
			return fmt.Errorf("lease admissions: %w", err)
		}
		if granted || s.full() {
			return nil
		}
	}
	return fault.Busy(errContended)
}

// misplaced reports whether the window's head is the trace of a clock that
// was wrong. It is then moved to the current bucket, whether there is a place
// or not: otherwise nobody had one until time has caught up.
func (s *subject) misplaced() bool { return s.window.Head > s.bucket+window.MaxAhead }

// full reports whether the window, as last seen, has no place at the current
// bucket.
func (s *subject) full() bool {
	if s.window.Version == 0 || s.misplaced() {
		return false
	}
	w := s.window
	w.Advance(s.bucket)
	return w.Total-s.unused >= int64(s.limit)
}

// extend counts a lease in the head bucket. Blind, it does so without
// knowing the window.
func (l *Limiter) extend(ctx context.Context, id string, s *subject, want int64, blind bool) (bool, error) {
	if !blind {
		want = min(want, int64(s.limit)-s.window.Total+s.unused)
	}
	if want < 1 {
		return false, nil
	}
	current, written, err := l.store.ExtendWindow(ctx, id, window.Extension{
		Head: s.bucket, Lease: want, From: s.from, Unused: s.unused, Limit: int64(s.limit),
	})
	if err != nil {
		return false, err
	}
	s.saw(current, written, want)
	return written, nil
}

// replace writes the window with its head moved to the current bucket.
func (l *Limiter) replace(ctx context.Context, id string, s *subject, want int64) (bool, error) {
	next := s.window
	if next.Version == 0 {
		// Versions begin with the time, so that none comes twice when the
		// table has dropped an idle window.
		next = window.Window{Version: l.now().UnixMilli(), Head: s.bucket}
	}
	next.Advance(s.bucket)
	next.Version++
	if next.Counts[window.Slot(s.from)] < s.unused {
		s.unused = 0 // the window it was leased in is gone
	}
	next.Add(s.from, -s.unused)
	want = max(0, min(want, int64(s.limit)-next.Total))
	if want == 0 && !s.misplaced() {
		return false, nil
	}
	next.Add(s.bucket, want)
	current, written, err := l.store.ReplaceWindow(ctx, id, s.window.Version, next)
	if err != nil {
		return false, err
	}
	s.saw(current, written, want)
	return written, nil
}

// saw takes over what the store answered to a write of a lease.
func (s *subject) saw(current window.Window, written bool, lease int64) {
	before := s.window.Version
	if written {
		before++
		s.left, s.unused = lease, 0
	}
	s.shared = current.Version != before
	s.window = current
}
