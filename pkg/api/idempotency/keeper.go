package idempotency

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/retry"
	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// codeReused is the code of a key that names another request already.
	codeReused = "idempotency_key_reused"
	// maxLockTries bounds the writes of one lock: another request may take an
	// abandoned lock, or free its own, at the same time.
	maxLockTries = 4
	// endTimeout bounds the write that ends a lock. It is made even when the
	// request's own time is up.
	endTimeout = 2 * time.Second
)

// Store keeps records. Its writes name the token of the record that they take
// the place of; done is false, and nothing written, when it has another one.
type Store interface {
	// PutRequest stores the record in the place of the one with the token, of
	// which 0 means that there is none, or one that has expired. Unless done, it
	// returns the record that is there, nil when there is none.
	PutRequest(ctx context.Context, r *Record, token uint64) (current *Record, done bool, err error)
	// RemoveRequest removes the record with the token.
	RemoveRequest(ctx context.Context, key Key, token uint64) error
}

// Keeper keeps answers. It is safe for concurrent use.
type Keeper struct {
	store Store
	box   *sealed.Box
	now   func() time.Time
}

// New makes a keeper that seals answers in the box.
func New(store Store, box *sealed.Box, now func() time.Time) *Keeper {
	return &Keeper{store: store, box: box, now: now}
}

// Lock is the right to run a request. It must be ended by [Lock.Free], unless
// its answer was kept.
type Lock struct {
	keeper *Keeper
	record Record
}

// Lock locks the request, or returns the answer that it got before. It is a
// fault idempotency_key_reused when the key names another request, and conflict
// while the same one runs.
func (k *Keeper) Lock(ctx context.Context, key Key, f Fingerprint) (*Lock, *Answer, error) {
	var lock *Lock
	var answer *Answer
	var token uint64 // of the record whose place the lock takes
	err := retry.Contended(ctx, maxLockTries, func() (done bool, err error) {
		now := value.TimeOf(k.now())
		lock = &Lock{keeper: k, record: Record{
			Key: key, Fingerprint: f, Token: newToken(), LockedUntil: now.Add(LockTime), ExpiresAt: now.Add(Retention),
		}}
		current, done, err := k.store.PutRequest(ctx, &lock.record, token)
		switch {
		case done || err != nil:
			return true, err
		case current == nil:
			token = 0 // it was freed meanwhile
		case current.Fingerprint != f:
			return true, fault.New(fault.Unprocessable, codeReused,
				"the Idempotency-Key names another request, with another path, query or body, or by a credential with other scopes or sites; choose a new key for this one")
		case current.Answer != nil:
			lock = nil
			answer, err = k.open(current)
			return true, err
		case current.LockedUntil > now:
			return true, running()
		default:
			token = current.Token
		}
		return false, nil
	})
	switch {
	case errors.Is(err, retry.ErrContended):
		return nil, nil, running()
	case err != nil:
		return nil, nil, fmt.Errorf("lock a request: %w", err)
	}
	return lock, answer, nil
}

// running is the fault of a request whose first one has no answer yet.
func running() error {
	f := fault.New(fault.Conflict, fault.CodeConflict, "a request with this Idempotency-Key runs already; send it again for its answer")
	f.RetryAfter = time.Second
	return f
}

func (k *Keeper) open(r *Record) (*Answer, error) {
	plain, err := k.box.OpenBytes(r.Answer, r.Key.purpose())
	if err != nil {
		return nil, fmt.Errorf("open a kept answer: %w", err)
	}
	return decode(plain)
}

// Kept is the record that keeps the answer, for a store that writes it in a
// transaction of its own.
func (l *Lock) Kept(a *Answer) (*Kept, error) {
	plain, err := a.encode()
	if err != nil {
		return nil, err
	}
	kept := &Kept{Record: l.record, Locked: l.record.Token}
	kept.Answer, kept.Token = l.keeper.box.SealBytes(plain, l.record.Key.purpose()), newToken()
	kept.ExpiresAt = value.TimeOf(l.keeper.now()).Add(Retention)
	return kept, nil
}

// Kept is a record with its answer, to be stored in the place of the lock. When
// that has another token, the lock was taken over, and the answer's action
// must not be done.
type Kept struct {
	Record

	Locked uint64 // the lock's token
}

// Lost is the fault of a lock that was taken over.
func (*Kept) Lost() error { return running() }

// Keep stores the answer.
func (l *Lock) Keep(ctx context.Context, a *Answer) error {
	kept, err := l.Kept(a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	_, done, err := l.keeper.store.PutRequest(ctx, &kept.Record, kept.Locked)
	if err == nil && !done {
		err = kept.Lost()
	}
	return err
}

// Free ends the lock, so that the request can be repeated at once. It does
// nothing when the answer was kept.
func (l *Lock) Free(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return l.keeper.store.RemoveRequest(ctx, l.record.Key, l.record.Token)
}

// newToken is a token that no other write has.
func newToken() uint64 { return max(1, rand.Uint64()) } //nolint:gosec // distinguishes writes, keeps no secret
