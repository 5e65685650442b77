package auth

import (
	"context"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/bounded"
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
	touched  *bounded.Map[string, time.Time]
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
	return &keyCache{recent: newRecent(read, now), store: store, touched: bounded.New[string, time.Time](maxRecent)}
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
	if now.Sub(c.touched.Get(textID)) < touchInterval {
		return false
	}
	c.touched.Set(textID, now)
	return true
}
