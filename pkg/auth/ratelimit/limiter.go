// Package ratelimit limits the requests of subjects, such as an application and
// its organization, over any number of function instances that share a table. No
// 60 s hold more admissions than the limit while the instances' clocks differ by
// less than 0.6 s. An instance that was refused does not ask the table again before
// the window has room. An instance leases several admissions with one write; admitting
// from a lease takes no call and no memory. A request that comes alone costs a
// write for each of its subjects, side by side. The caller says who the subjects
// are, what their limits are, and how many admissions a request takes: its weight.
//
// The writes of leases also count the day's requests, errors and refusals of the
// subject; the first write of another day first stores the finished one. What an
// instance has counted since its last lease is lost when it ends: errors,
// refusals, and that the rest of its last lease, at most 1% of the limit, was not
// used.
package ratelimit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/auth/ratelimit/window"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/retry"
)

// Store keeps the window of each subject. ExtendWindow and ReplaceWindow return
// the window as it is afterwards, whether they wrote or not; a version of 0 means
// that there is none.
type Store interface {
	// Window returns the subject's window as it is.
	Window(ctx context.Context, subject string) (window.Window, error)
	// ExtendWindow makes the extension if the window's head still is the
	// extension's and the total keeps to the limit.
	ExtendWindow(ctx context.Context, subject string, e window.Extension) (current window.Window, written bool, err error)
	// ReplaceWindow writes next if the window's version still is the given
	// one, 0 if there is none.
	ReplaceWindow(ctx context.Context, subject string, version int64, next window.Window) (current window.Window, written bool, err error)
	// FinishDay keeps the usage of the window's day, unless that of a later
	// version is kept.
	FinishDay(ctx context.Context, subject string, w window.Window) error
}

const (
	// maxLeaseShare: a lease takes at most 1/maxLeaseShare of the limit, unless a
	// request weighs more.
	maxLeaseShare = 100
	// maxReturnAge is for how many buckets unused admissions can be returned:
	// few enough that their bucket still is in the window.
	maxReturnAge = 30
	// maxLeaseWrites bounds the writes of one lease. Instances that move the
	// head at the same time need two or three.
	maxLeaseWrites = 10
	// maxSubjects bounds each of the two generations of subjects.
	maxSubjects = 5_000
)

// Decision says whether a request is admitted, with what the response's rate
// limit headers need.
type Decision struct {
	Allowed    bool
	Limit      int
	Remaining  int
	Reset      time.Time
	RetryAfter time.Duration // when not Allowed
}

// Subject is whom a limit binds, and to how many admissions in 60 s.
type Subject struct {
	ID    string
	Limit int
}

// Limiter is safe for concurrent use.
//
// When the table does not answer, Admit fails, and the request with it: the
// request needs the same table, so admitting it would break the limit and help
// nobody.
type Limiter struct {
	store Store
	now   func() time.Time

	mu sync.Mutex
	// When young is full it becomes old, and the old subjects are forgotten.
	young, old map[string]*subject
}

// New makes a limiter whose state is kept in the store.
func New(store Store, now func() time.Time) *Limiter {
	return &Limiter{store: store, now: now, young: map[string]*subject{}}
}

// subject is what this instance knows of a subject, guarded by lock.
type subject struct {
	lock chan struct{} // holds one element while locked, so that a wait can be cancelled

	window window.Window // as last seen
	shared bool          // another instance wrote the window before that
	others bool          // another instance wrote the window between the last two leases

	bucket   int64 // current, or the window's head when that is a little ahead
	used     int64 // admitted in bucket
	previous int64 // admitted in the bucket before
	left     int64 // leased in bucket and not used
	unused   int64 // leased in the bucket from and not used, to be returned
	from     int64

	uncounted    window.Usage // since the last lease, which counts itself as used
	clientErrors atomic.Int64 // likewise; Limiter.ClientError does not wait for the lock

	limit, weight int64     // of the last request
	refusedUntil  time.Time // zero when not refused
	refusedWeight int64     // the least that is refused until then
}

// Admit counts a request against the limits of all its subjects or, where one of
// them has no room for its weight, against none. The decision is that of the
// subject that has the least left or, of those that refuse, refuses for longest. A
// weight beyond a limit takes all of it. Callers name subjects in the same order.
func (l *Limiter) Admit(ctx context.Context, weight int, of ...Subject) (Decision, error) {
	subjects := make([]*subject, 0, len(of))
	defer func() {
		for _, s := range subjects {
			<-s.lock
		}
	}()
	for _, given := range of {
		s := l.subject(given.ID)
		select {
		case s.lock <- struct{}{}:
			subjects = append(subjects, s)
		case <-ctx.Done():
			return Decision{}, fmt.Errorf("wait for the rate limit: %w", ctx.Err())
		}
	}
	now := l.now()
	for i, s := range subjects {
		s.begin(now, int64(of[i].Limit), int64(weight))
	}
	refusing := refusal(subjects, now)
	if refusing == nil {
		if err := l.leaseAll(ctx, of, subjects); err != nil {
			return Decision{}, err
		}
		for _, s := range subjects {
			s.checkLease(now)
		}
		refusing = refusal(subjects, now)
	}
	if refusing != nil {
		for _, s := range subjects {
			s.uncounted.RateLimited++
		}
		return refusing.refuse(now), nil
	}
	for _, s := range subjects {
		s.left -= s.weight
		s.used += s.weight
	}
	return slices.MinFunc(subjects, func(a, b *subject) int { return cmp.Compare(a.remaining(), b.remaining()) }).admit(), nil
}

// refusal is the subject that refuses the request for longest; nil when none does.
func refusal(subjects []*subject, now time.Time) (longest *subject) {
	for _, s := range subjects {
		if s.refuses(now) && (longest == nil || s.refusedUntil.After(longest.refusedUntil)) {
			longest = s
		}
	}
	return longest
}

// leaseAll takes the leases that the subjects need, side by side.
func (l *Limiter) leaseAll(ctx context.Context, of []Subject, subjects []*subject) error {
	var group errgroup.Group
	for i, s := range subjects {
		if s.left < s.weight {
			group.Go(func() error { return l.lease(ctx, of[i].ID, s) })
		}
	}
	return group.Wait()
}

// ClientError counts an admitted request of the subject that was answered 4xx.
func (l *Limiter) ClientError(id string) { l.subject(id).clientErrors.Add(1) }

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

// begin prepares the subject for a request.
func (s *subject) begin(now time.Time, limit, weight int64) {
	s.moveTo(window.At(now))
	if s.limit != limit {
		s.limit, s.refusedUntil = limit, time.Time{}
	}
	s.weight = min(weight, limit)
}

// refuses reports whether the instance knows that there is no room for the
// request. There may be for a lighter one than was refused.
func (s *subject) refuses(now time.Time) bool {
	return now.Before(s.refusedUntil) && s.weight >= s.refusedWeight
}

// checkLease notes a refusal if the lease is too small for the request.
func (s *subject) checkLease(now time.Time) {
	if s.left >= s.weight {
		return
	}
	s.refusedUntil, s.refusedWeight = s.window.FreeAt(s.limit-s.weight+1), s.weight
	if !s.refusedUntil.After(now) {
		s.refusedUntil = now.Add(window.Width)
	}
}

// moveTo ends the lease of an older bucket: its rest can only be returned.
func (s *subject) moveTo(bucket int64) {
	if bucket < s.bucket-window.MaxAhead {
		// The clock was set back: nothing computed with it holds.
		s.uncounted.Requests -= s.left
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
		s.uncounted.Requests -= s.left
		s.unused, s.from, s.left = s.left, s.bucket, 0
	}
	if bucket-s.from > maxReturnAge {
		s.unused = 0
	}
	s.bucket = bucket
}

func (s *subject) admit() Decision {
	return Decision{Allowed: true, Limit: int(s.limit), Remaining: s.remaining(), Reset: wholeSecond(s.window.OldestLeaves())}
}

func (s *subject) refuse(now time.Time) Decision {
	return Decision{
		Limit: int(s.limit), Remaining: s.remaining(), Reset: wholeSecond(s.refusedUntil), RetryAfter: s.refusedUntil.Sub(now),
	}
}

// remaining counts what the table has left and what this instance holds.
func (s *subject) remaining() int {
	return int(max(0, s.limit-s.window.Total+s.left+s.unused))
}

// wholeSecond rounds up, so that a caller that waits until then is not early.
func wholeSecond(t time.Time) time.Time {
	return t.Add(time.Second - time.Nanosecond).Truncate(time.Second)
}

// need is the least size of the next lease: what the request needs.
func (s *subject) need() int64 { return s.weight - s.left }

// want is its size: as much as the instance used in the last bucket, at most 1% of
// the limit, and at least what the request needs.
func (s *subject) want() int64 {
	return max(s.need(), min(max(s.previous, s.used), s.limit/maxLeaseShare))
}

// lease takes admissions for the current bucket from the table. Mostly that
// is one write: the window is known from the last write, or a refused write
// returns it. An instance that admitted nothing just now, of a subject that others
// admit too, reads the window first: its write would be refused, and a refused
// write costs five times as much as a read. s.left stays too small when the limit
// is reached.
func (l *Limiter) lease(ctx context.Context, id string, s *subject) error {
	known := s.window.Version
	if s.used == 0 && s.previous == 0 && (s.others || known == 0) {
		current, err := l.store.Window(ctx, id)
		if err != nil {
			return fmt.Errorf("read the rate window: %w", err)
		}
		s.window, s.shared = current, false
	}
	defer func() { s.others = s.window.Version > known+1 }()
	// When other instances write the window too, one has probably moved the head
	// to the current bucket already.
	blind := s.shared
	// Without pauses: a refused write returns the window that the next one is made
	// for.
	for range maxLeaseWrites {
		granted, err := l.tryLease(ctx, id, s, blind)
		if err != nil {
			return fmt.Errorf("lease admissions: %w", err)
		}
		if granted || s.full() {
			return nil
		}
		blind = false
	}
	return fault.Busy(retry.ErrContended)
}

// tryLease makes one write of a lease; blind means without knowing the window.
func (l *Limiter) tryLease(ctx context.Context, id string, s *subject, blind bool) (granted bool, err error) {
	if head := s.window.Head; head > s.bucket && head <= s.bucket+window.MaxAhead {
		s.moveTo(head)
	}
	if blind || s.window.Version != 0 && s.window.Head == s.bucket {
		return l.extend(ctx, id, s, blind)
	}
	return l.replace(ctx, id, s)
}

// misplaced reports whether a wrong clock has moved the window's head into
// the future. The head is then moved back even when the window is full:
// otherwise all requests would be refused until that time.
func (s *subject) misplaced() bool { return s.window.Head > s.bucket+window.MaxAhead }

// full reports whether the window, as last seen, has no room for the request at
// the current bucket.
func (s *subject) full() bool {
	if s.window.Version == 0 || s.misplaced() {
		return false
	}
	w := s.window
	w.Advance(s.bucket)
	return w.Total-s.unused > s.limit-s.need()
}

// extend counts a lease in the head bucket; blind means without knowing the
// window.
func (l *Limiter) extend(ctx context.Context, id string, s *subject, blind bool) (bool, error) {
	want := s.want()
	if !blind {
		want = min(want, s.limit-s.window.Total+s.unused)
	}
	if want < s.need() {
		return false, nil
	}
	usage := s.usage(want)
	current, written, err := l.store.ExtendWindow(ctx, id, window.Extension{
		Head: s.bucket, Lease: want, From: s.from, Unused: s.unused, Limit: s.limit, Usage: usage,
	})
	if err != nil {
		return false, err
	}
	s.update(current, written, want, usage)
	return written, nil
}

// replace writes the window with its head moved to the current bucket.
func (l *Limiter) replace(ctx context.Context, id string, s *subject) (bool, error) {
	next := s.window
	if next.Version == 0 {
		// Versions begin with the time, so that none is used twice when the
		// table has removed an idle window.
		next = window.Window{Version: l.now().UnixMilli(), Head: s.bucket}
	}
	next.Advance(s.bucket)
	next.Version++
	if next.Counts[window.Index(s.from)] < s.unused {
		s.unused = 0 // its window is gone
	}
	next.Add(s.from, -s.unused)
	want := min(s.want(), s.limit-next.Total)
	switch {
	case want >= s.need():
	case s.misplaced():
		want = 0
	default:
		return false, nil
	}
	next.Add(s.bucket, want)
	if s.window.Version != 0 && window.Day(next.Head) > window.Day(s.window.Head) {
		if err := l.store.FinishDay(ctx, id, s.window); err != nil {
			return false, err
		}
		next.Usage = window.Usage{}
	}
	usage := s.usage(want)
	next.Usage.Add(usage)
	current, written, err := l.store.ReplaceWindow(ctx, id, s.window.Version, next)
	if err != nil {
		return false, err
	}
	s.update(current, written, want, usage)
	return written, nil
}

// usage is what the write of a lease counts.
func (s *subject) usage(lease int64) window.Usage {
	u := s.uncounted
	u.Requests += lease
	u.ClientErrors = s.clientErrors.Load()
	return u
}

// update keeps the store's answer to a write of a lease that counts usage.
func (s *subject) update(current window.Window, written bool, lease int64, usage window.Usage) {
	before := s.window.Version
	if written {
		before++
		s.left, s.unused, s.uncounted = s.left+lease, 0, window.Usage{}
		s.clientErrors.Add(-usage.ClientErrors)
	}
	s.shared = current.Version != before
	s.window = current
}
