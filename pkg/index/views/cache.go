// Package views answers queries of lists from views: the columns of a list in
// memory, as far as queries needed them, kept up to date by following the
// list's tail.
//
// An answer is exact for the list as it was at most [Freshness] ago. When that
// cannot be had in time, or the index is damaged, the answer is a fault of kind
// Unavailable, never a wrong list; a damaged index is rebuilt. Package columnar
// says what a query means, package index what is stored.
package views

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
)

const (
	// Freshness is how old a view may be when it answers.
	Freshness = time.Second
	// loadBudget is how long a request waits for a view to load what its query
	// needs. After that the loading goes on and the client may ask again.
	loadBudget = 3 * time.Second
	// loadLimit ends a loading that hangs.
	loadLimit = 5 * time.Minute
	// maxIdle is how long an unused view is kept: after it, reading the index is
	// likely to cost less than reading what the tail has gathered.
	maxIdle = time.Hour
	// rebuildWait is how long a damaged index is not read again.
	rebuildWait = 3 * time.Second
	// viewOverhead is about what a view takes besides its documents, in bytes.
	viewOverhead = 8 << 10
	// maxRestarts bounds how often a query starts again because what it needs
	// was replaced meanwhile.
	maxRestarts = 10
)

// Storage keeps the indexes.
type Storage interface {
	index.Reader
	index.Requester
}

// Config bounds a cache.
type Config struct {
	MaxBytes int64 // memory of all views together; 0 means 256 MiB
	Clock    func() time.Time
	Start    index.Starter // starts the rebuild of a damaged list
	Logger   *slog.Logger
}

// Cache holds a view for each organization and list that is asked for. The
// least recently used view leaves when memory is short. It is safe for
// concurrent use.
type Cache struct {
	storage Storage
	cfg     Config

	mu      sync.Mutex
	views   map[index.Key]*cachedView
	damaged map[index.Key]damage
}

// damage is why an index cannot be read, and since when that is known.
type damage struct {
	err   error
	since time.Time
}

// NewCache returns an empty cache.
func NewCache(storage Storage, cfg Config) *Cache {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 256 << 20
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Cache{storage: storage, cfg: cfg, views: map[index.Key]*cachedView{}, damaged: map[index.Key]damage{}}
}

// Query answers a query of the organization's list, as the list was at most
// [Freshness] ago. It fails with a fault of kind Unavailable when storage is
// busy, when loading takes longer than its budget, and when the index is
// damaged.
func (c *Cache) Query(ctx context.Context, org value.ID, list *index.List, q columnar.Query) (columnar.Result, error) {
	key := index.Key{Org: org, List: list}
	if err := c.knownDamage(key); err != nil {
		return columnar.Result{}, fault.Busy(err)
	}
	for range maxRestarts {
		v := c.view(key)
		result, err := c.answer(ctx, v, q)
		switch {
		case err == nil:
			return result, nil
		case errors.Is(err, errOutdated):
			c.forget(key, v)
		case index.Damaged(err):
			c.forget(key, v)
			return columnar.Result{}, c.rebuild(ctx, key, err)
		default:
			return columnar.Result{}, err
		}
	}
	return columnar.Result{}, fault.Busy(fmt.Errorf("the index of %s changed %d times while it was read", list.Name, maxRestarts))
}

// answer asks a view, once it is fresh and has what the query needs.
func (c *Cache) answer(ctx context.Context, v *cachedView, q columnar.Query) (columnar.Result, error) {
	budget := time.NewTimer(loadBudget)
	defer budget.Stop()
	for asked := c.cfg.Clock(); ; {
		if v.fresh(asked) {
			if result, missing := v.query(q); missing.none() {
				return result, nil
			}
		}
		if ctx.Err() != nil { // a request that was called off starts no load
			return columnar.Result{}, fault.Busy(ctx.Err())
		}
		select {
		case prepared := <-c.prepare(ctx, v, q):
			if prepared.Err != nil {
				return columnar.Result{}, prepared.Err
			}
		case <-budget.C:
			return columnar.Result{}, fault.Busy(errors.New("the index is still being loaded"))
		case <-ctx.Done():
			return columnar.Result{}, fault.Busy(ctx.Err())
		}
	}
}

// prepare brings a view up to date and loads what a query misses. Of concurrent
// requests for one list one does so and the others wait for it.
func (c *Cache) prepare(ctx context.Context, v *cachedView, q columnar.Query) <-chan singleflight.Result {
	return v.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadLimit)
		defer cancel()
		defer c.shrink(v)
		if err := v.refresh(ctx); err != nil {
			return nil, err
		}
		lacking, _, _ := v.missingFor(q)
		return nil, v.load(ctx, lacking)
	})
}

// knownDamage returns the damage that was found in an index a short time ago.
func (c *Cache) knownDamage(key index.Key) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.damaged[key]
	if ok && c.cfg.Clock().Sub(d.since) < rebuildWait {
		return d.err
	}
	delete(c.damaged, key)
	return nil
}

// rebuild requests the rebuild of a damaged index. Until that may be done, the
// index is not read again.
func (c *Cache) rebuild(ctx context.Context, key index.Key, cause error) error {
	c.cfg.Logger.ErrorContext(ctx, "an index is rebuilt", "organizationId", key.Org, "list", key.List.Name, "error", cause)
	c.mu.Lock()
	c.damaged[key] = damage{cause, c.cfg.Clock()}
	c.mu.Unlock()
	if err := key.RequestRebuild(ctx, c.storage, value.TimeOf(c.cfg.Clock())); err != nil {
		return err
	}
	if c.cfg.Start != nil {
		key.StartJob(ctx, c.cfg.Start, c.cfg.Logger)
	}
	return fault.Busy(cause)
}

// view returns the view of a list, a new one when there is none or it was idle
// for too long.
func (c *Cache) view(key index.Key) *cachedView {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.cfg.Clock()
	v := c.views[key]
	if v == nil || now.Sub(v.used) > maxIdle {
		v = newView(index.Index{Key: key, Reader: c.storage}, c.cfg.Clock)
		c.views[key] = v
	}
	v.used = now
	return v
}

func (c *Cache) forget(key index.Key, v *cachedView) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.views[key] == v {
		delete(c.views, key)
	}
}

// shrink drops the least recently used views while all together take more
// memory than they may. The view that has just grown stays, whatever its size.
func (c *Cache) shrink(grown *cachedView) {
	size := grown.view.Bytes() + viewOverhead
	c.mu.Lock()
	defer c.mu.Unlock()
	grown.bytes = size
	total := int64(0)
	for _, v := range c.views {
		total += v.bytes
	}
	for total > c.cfg.MaxBytes {
		var oldest *cachedView
		for _, v := range c.views {
			if v != grown && (oldest == nil || v.used.Before(oldest.used)) {
				oldest = v
			}
		}
		if oldest == nil {
			return
		}
		total -= oldest.bytes
		delete(c.views, oldest.Key)
	}
}
