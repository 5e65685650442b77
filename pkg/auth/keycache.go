package auth

import (
	"context"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/account"
)

const (
	// keyMaxAge is how long a key that was read is believed. Revoking a key
	// and suspending an application act within 5 s, so it is less.
	keyMaxAge = 4 * time.Second
	// keyTimeout bounds one read.
	keyTimeout = 3 * time.Second
	// maxCachedKeys bounds the cache: a full one is emptied.
	maxCachedKeys = 10_000
)

// cachedKey is the result of reading one key id, found or not.
type cachedKey struct {
	started     time.Time     // before the read, so that the age is never understated
	ready       chan struct{} // closed when the rest is set
	credential  *account.Credential
	application *account.Application
	err         error
	touched     time.Time // guarded by the cache's lock
}

// keyCache remembers keys for some seconds, each read by one caller while
// the others wait.
type keyCache struct {
	store KeyStore
	now   func() time.Time

	mu   sync.Mutex
	keys map[string]*cachedKey // by key id
}

func newKeyCache(store KeyStore, now func() time.Time) *keyCache {
	return &keyCache{store: store, now: now, keys: map[string]*cachedKey{}}
}

// get returns the key with the id. Errors are not remembered.
func (c *keyCache) get(ctx context.Context, textID string) (*cachedKey, error) {
	key, load := c.claim(textID)
	if load {
		c.load(ctx, textID, key)
	}
	select {
	case <-key.ready:
		return key, key.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// claim returns the current key of the id, and whether the caller has to load it.
func (c *keyCache) claim(textID string) (key *cachedKey, load bool) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.keys[textID]
	if last != nil && now.Sub(last.started) < keyMaxAge {
		return last, false
	}
	key = &cachedKey{started: now, ready: make(chan struct{})}
	if last != nil {
		key.touched = last.touched
	} else if len(c.keys) >= maxCachedKeys {
		clear(c.keys)
	}
	c.keys[textID] = key
	return key, true
}

// load reads the key for all who wait, so it outlives the caller.
func (c *keyCache) load(ctx context.Context, textID string, key *cachedKey) {
	defer close(key.ready)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyTimeout)
	defer cancel()
	key.credential, key.application, key.err = c.store.Credential(ctx, textID)
	if key.err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keys[textID] == key {
		delete(c.keys, textID)
	}
}

// claimTouch reports whether the key's last use is due to be written. The
// caller must write it then.
func (c *keyCache) claimTouch(textID string) bool {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	key := c.keys[textID]
	if key == nil || now.Sub(key.touched) < touchInterval {
		return false
	}
	key.touched = now
	return true
}
