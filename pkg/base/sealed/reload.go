package sealed

import (
	"context"
	"crypto/cipher"
	"time"
)

// Source reads the service keys: the one to seal under, and after it those
// that texts may be sealed under as well.
type Source func(context.Context) ([][]byte, error)

const (
	// KeysMaxAge is how long a box seals under its keys without reading them
	// again, and so how late a rotation acts where nothing is opened.
	KeysMaxAge = 5 * time.Minute
	// rereadPause is the least time between two readings that texts of unknown
	// keys cause, and between two that fail.
	rereadPause = time.Minute
	// readTimeout bounds a reading.
	readTimeout = 3 * time.Second
)

// Load makes a box with the keys of the source. It reads them again before it
// seals when they are older than [KeysMaxAge], and when it meets a text of a
// key that it has not, at most once a minute. When the source fails it goes on
// with the keys that it has.
func Load(ctx context.Context, source Source, now func() time.Time) (*Box, error) {
	b := &Box{source: source, now: now}
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *Box) read(ctx context.Context) error {
	at := b.now()
	keys, err := b.source(ctx)
	if err != nil {
		return err
	}
	r, err := newRing(keys)
	if err != nil {
		return err
	}
	r.read = at
	b.ring.Store(r)
	return nil
}

// reread reads the keys anew. It serves all who wait, so it outlives the
// caller. The caller holds the lock.
func (b *Box) reread() error {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	return b.read(ctx)
}

// fresh returns keys that are young enough to seal under, or those that there
// are while another caller reads them or they cannot be read: the key before
// the current one opens everywhere.
func (b *Box) fresh() *ring {
	r := b.ring.Load()
	if b.source == nil || b.now().Sub(r.read) < KeysMaxAge || !b.mu.TryLock() {
		return r
	}
	defer b.mu.Unlock()
	if b.reread() != nil {
		old := *b.ring.Load()
		old.read = b.now().Add(rereadPause - KeysMaxAge) // to be tried again after the pause
		b.ring.Store(&old)
	}
	return b.ring.Load()
}

// key returns the key with the id. It reads the keys again when it has none,
// unless it did so for another text within [rereadPause].
func (b *Box) key(id string) (cipher.AEAD, bool) {
	aead, known := b.ring.Load().keys[id]
	if known || b.source == nil {
		return aead, known
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if aead, known = b.ring.Load().keys[id]; known {
		return aead, known // another caller read them meanwhile
	}
	if now := b.now(); b.tried.IsZero() || now.Sub(b.tried) >= rereadPause {
		b.tried = now
		if b.reread() != nil {
			return nil, false
		}
	}
	aead, known = b.ring.Load().keys[id]
	return aead, known
}
