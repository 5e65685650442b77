package auth

import (
	"context"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/account"
)

const (
	// keyFresh is how long what was read of a key is believed. Revoking a
	// key and suspending an application act within 5 s, so it is less.
	keyFresh = 4 * time.Second
	// keyLoad bounds one look-up.
	keyLoad = 3 * time.Second
	// keyCacheSize is how many keys each of the two generations holds.
	keyCacheSize = 5_000
)

// keyEntry is what was read of one key id, found or not.
type keyEntry struct {
	started     time.Time     // before the read, so that age is never understated
	ready       chan struct{} // closed when the rest is set
	credential  *account.Credential
	application *account.Application
	err         error
	touched     time.Time // guarded by the cache's lock
}

// keyCache remembers keys for some seconds, each read by one caller while
// the others wait. It is bounded: entries live in a young generation that
// becomes the old one when it is full, and the old one is dropped.
type keyCache struct {
	store KeyStore
	now   func() time.Time

	mu         sync.Mutex
	young, old map[string]*keyEntry
}

func newKeyCache(store KeyStore, now func() time.Time) *keyCache {
	return &keyCache{store: store, now: now, young: map[string]*keyEntry{}}
}

// get returns what is known of the key id. Errors are not remembered.
func (c *keyCache) get(ctx context.Context, textID string) (*keyEntry, error) {
	entry, mine := c.entry(textID)
	if mine {
		c.load(ctx, textID, entry)
	}
	select {
	case <-entry.ready:
		return entry, entry.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// entry returns the current entry of the key id, and whether the caller has
// to load it.
func (c *keyCache) entry(textID string) (entry *keyEntry, mine bool) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.lookup(textID)
	if last != nil && now.Sub(last.started) < keyFresh {
		return last, false
	}
	entry = &keyEntry{started: now, ready: make(chan struct{})}
	if last != nil {
		entry.touched = last.touched
	}
	if len(c.young) >= keyCacheSize {
		c.old, c.young = c.young, map[string]*keyEntry{}
	}
	c.young[textID] = entry
	return entry, true
}

func (c *keyCache) lookup(textID string) *keyEntry {
	if e := c.young[textID]; e != nil {
		return e
	}
	return c.old[textID]
}

// load reads the key for everybody who waits, so it outlives the caller.
func (c *keyCache) load(ctx context.Context, textID string, entry *keyEntry) {
	defer close(entry.ready)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyLoad)
	defer cancel()
	entry.credential, entry.application, entry.err = c.store.Credential(ctx, textID)
	if entry.err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, generation := range []map[string]*keyEntry{c.young, c.old} {
		if generation[textID] == entry {
			delete(generation, textID)
		}
	}
}

// claimTouch reports whether the key's last use is due to be written, and
// takes that on.
func (c *keyCache) claimTouch(textID string) bool {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.lookup(textID)
	if entry == nil || now.Sub(entry.touched) < touchInterval {
		return false
	}
	entry.touched = now
	return true
}
