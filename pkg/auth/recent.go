package auth

import (
	"context"
	"sync"
	"time"
)

const (
	// recentMaxAge is how long what was read of a key or an application is
	// believed. Revocation and suspension act within 5 s, so it is less.
	recentMaxAge = 4 * time.Second
	// readTimeout bounds one read.
	readTimeout = 3 * time.Second
	// maxRecent bounds the cache: a full one is emptied.
	maxRecent = 10_000
)

// recent remembers for some seconds what was read, found or not. Each key is
// read by one caller while the others wait.
type recent[K comparable, V any] struct {
	read func(context.Context, K) (V, error)
	now  func() time.Time

	mu      sync.Mutex
	entries map[K]*reading[V]
}

// reading is the result of one read.
type reading[V any] struct {
	started time.Time     // before the read, so that the age is never understated
	ready   chan struct{} // closed when the rest is set
	value   V
	err     error
}

func newRecent[K comparable, V any](read func(context.Context, K) (V, error), now func() time.Time) *recent[K, V] {
	return &recent[K, V]{read: read, now: now, entries: map[K]*reading[V]{}}
}

// get returns what the key has. Errors are not remembered.
func (c *recent[K, V]) get(ctx context.Context, key K) (V, error) {
	return c.since(ctx, key, time.Time{})
}

// since returns what the key has, read at the given time or later, which is not
// ahead of the clock.
func (c *recent[K, V]) since(ctx context.Context, key K, from time.Time) (v V, err error) {
	r, load := c.claim(key, from)
	if load {
		c.load(ctx, key, r)
	}
	select {
	case <-r.ready:
		return r.value, r.err
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

// claim returns the key's current reading, which began at the given time or
// later, and whether the caller has to load it.
func (c *recent[K, V]) claim(key K, from time.Time) (r *reading[V], load bool) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.entries[key]
	if last != nil && now.Sub(last.started) < recentMaxAge && !last.started.Before(from) {
		return last, false
	}
	if last == nil && len(c.entries) >= maxRecent {
		clear(c.entries)
	}
	r = &reading[V]{started: now, ready: make(chan struct{})}
	c.entries[key] = r
	return r, true
}

// load reads for all who wait, so it outlives the caller.
func (c *recent[K, V]) load(ctx context.Context, key K, r *reading[V]) {
	defer close(r.ready)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	if r.value, r.err = c.read(ctx, key); r.err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[key] == r {
		delete(c.entries, key)
	}
}
