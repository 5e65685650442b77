package auth

import (
	"context"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/account"
)

// foundKey is the result of reading one key id; either is nil when it does not
// exist.
type foundKey struct {
	credential  *account.Credential
	application *account.Application
}

// keyCache remembers keys for some seconds, and when the last use of each was
// written.
type keyCache struct {
	*recent[string, foundKey] // by key id

	store KeyStore

	touching sync.Mutex
	touched  map[string]time.Time
}

func newKeyCache(store KeyStore, now func() time.Time) *keyCache {
	read := func(ctx context.Context, textID string) (k foundKey, err error) {
		k.credential, k.application, err = store.Credential(ctx, textID)
		return k, err
	}
	return &keyCache{recent: newRecent(read, now), store: store, touched: map[string]time.Time{}}
}

// claimTouch reports whether the key's last use is due to be written. The
// caller must write it then.
func (c *keyCache) claimTouch(textID string) bool {
	now := c.now()
	c.touching.Lock()
	defer c.touching.Unlock()
	last, known := c.touched[textID]
	if known && now.Sub(last) < touchInterval {
		return false
	}
	if !known && len(c.touched) >= maxRecent {
		clear(c.touched)
	}
	c.touched[textID] = now
	return true
}
