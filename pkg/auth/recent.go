package auth

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/commerce-integration/service/pkg/base/bounded"
	"github.com/commerce-integration/service/pkg/base/fault"
)

const (
	// recentMaxAge is how long a reading of a key or an application is
	// believed. Revocation and suspension act within 5 s; the rest of them is for
	// the table, whose eventually consistent reads are behind for usually less
	// than a second.
	recentMaxAge = 3 * time.Second
	// replicaAge is more than an eventually consistent read is ever behind. Only
	// what a token that is as old was made with needs it.
	replicaAge = time.Minute
	// maxRecent bounds the keys of a cache.
	maxRecent = 10_000
)

// recent remembers readings for some seconds, found or not. Each key is
// read by one caller while the others wait.
type recent[K comparable, V any] struct {
	// read reads, and may be a moment behind unless current is asked for. It gets
	// the last reading of the key; zero when unknown.
	read func(ctx context.Context, key K, last V, current bool) (V, error)
	now  func() time.Time

	readings *bounded.Map[K, reading[V]]
	loads    singleflight.Group
}

// reading is the result of one read.
type reading[V any] struct {
	value   V
	started time.Time // before the read, so that the age is never understated
	current bool      // the read was not behind
}

func newRecent[K comparable, V any](read func(context.Context, K, V, bool) (V, error), now func() time.Time) *recent[K, V] {
	return &recent[K, V]{read: read, now: now, readings: bounded.New[K, reading[V]](maxRecent)}
}

// get returns what the key has. Errors are not remembered.
func (c *recent[K, V]) get(ctx context.Context, key K) (V, error) {
	return c.since(ctx, key, time.Time{})
}

// since returns what the key had at the given time, which is not ahead of the
// clock, or has had since.
func (c *recent[K, V]) since(ctx context.Context, key K, from time.Time) (v V, err error) {
	now := c.now()
	if last, good := c.last(key, from, now); good {
		return last, nil
	}
	loaded := c.loads.DoChan(fmt.Sprint(key, from.UnixNano()), func() (any, error) {
		last, good := c.last(key, from, now)
		if good { // by a load that ended since
			return last, nil
		}
		return c.load(ctx, key, last, reading[V]{started: now, current: now.Before(from.Add(replicaAge))})
	})
	select {
	case result := <-loaded:
		v, _ = result.Val.(V)
		return v, result.Err
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

// last is the last reading of the key, and reports whether it is good for since.
func (c *recent[K, V]) last(key K, from, now time.Time) (v V, good bool) {
	last := c.readings.Get(key) // without one it started long ago
	return last.value, now.Sub(last.started) < recentMaxAge && last.shows(from)
}

// shows reports whether the reading has the state of that time.
func (r *reading[V]) shows(from time.Time) bool {
	return !r.started.Before(from) && (r.current || !r.started.Before(from.Add(replicaAge)))
}

// load reads for all who wait, so it outlives the caller.
func (c *recent[K, V]) load(ctx context.Context, key K, last V, r reading[V]) (v V, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	defer fault.Recovered(&err) // singleflight panics in a goroutine of its own
	if r.value, err = c.read(ctx, key, last, r.current); err != nil {
		return v, err
	}
	c.readings.Set(key, r)
	return r.value, nil
}
