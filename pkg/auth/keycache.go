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
	read := func(ctx context.Context, textID string, last foundKey, _ bool) (k foundKey, err error) {
		if last.credential == nil {
			k.credential, k.application, err = store.Credential(ctx, textID)
		} else {
			k.credential, k.application, err = store.RefreshCredential(ctx, last.credential)
		}
		return k, err
	}
	return &keyCache{recent: newRecent(read, now), store: store, touched: map[string]time.Time{}}
}

// claimTouch reports whether the key's last use is due to be written, as far as
// the credential and this instance know. The caller must write it then.
func (c *keyCache) claimTouch(credential *account.Credential) bool {
	now, textID := c.now(), credential.KeyText
	if now.Sub(credential.LastUsedAt.Std()) < touchInterval {
		return false
	}
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
