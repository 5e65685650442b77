// Package views answers queries of lists from views: the columns of a list in
// memory, as far as queries needed them, kept up to date by following the
// list's tail.
//
// An answer is exact for the list as it was at most [Freshness] ago or, for a
// query that asks for that, as it is now. It returns the time from which to ask
// next so that nothing is missed; package index says why that is so. When that
// cannot be had in time, or the index is damaged, the answer is a fault of kind
// Unavailable, never a wrong list; a damaged index is rebuilt. Package columnar
// says what a query means, package index how it is stored.
//
// # Memory
//
// What views take, and what loads and queries under way may add, never passes
// Config.MaxBytes. The manifest says how large segments are; so room is made, by
// dropping the least recently used views, before anything is read. A query that needs
// more than MaxBytes even in a view of its own is refused then. The manifest has the
// counts and the bounds of the times and ids of each partition: so pages in the order
// of a time, walks by id and totals over whole partitions need few of them, however
// long the list is. A query for some ids is answered from the table where the list is
// too large. pkg/ops/OPERATING.md, Size, has the figures, and
// TestMemoryStaysWithinItsBudget asks anything.
//
// # Time
//
// Lambda freezes an instance once it has answered, so nothing goes on behind an
// answer. The request that begins a load goes on with it until answerReserve
// before its deadline, and what was loaded by then stays. Others that need the
// same list wait for it, for waitBudget at most.
package views

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

const (
	// Freshness is how old a view may be when it answers.
	Freshness = time.Second
	// maxIdle is how long an unused view is kept: after it, reading the index is
	// likely to cost less than reading what the tail has gathered.
	maxIdle = time.Hour
	// rebuildWait is how long a damaged index is not read again.
	rebuildWait = 3 * time.Second
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
	// rebuildRequestedAt is when lists were last asked to be built.
	rebuildRequestedAt map[index.Key]time.Time
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
	return &Cache{
		storage: storage, cfg: cfg,
		views: map[index.Key]*cachedView{}, damaged: map[index.Key]damage{}, rebuildRequestedAt: map[index.Key]time.Time{},
	}
}

// Query answers a query of the organization's list, as the list was at most
// [Freshness] ago or, with now, as it is: with every entry that its tail had
// when the query came. It fails with list_too_large, a fault of kind Invalid, when the
// query needs more documents than fit into memory. It fails with a fault of kind
// Unavailable when storage or memory is busy, when loading takes longer than its
// budget, when the index is damaged, and when it is still to be built.
func (c *Cache) Query(ctx context.Context, org value.ID, list *index.List, q columnar.Query, now bool) (lists.Answer, error) {
	key := index.Key{Org: org, List: list}
	if err := c.knownDamage(key); err != nil {
		return lists.Answer{}, fault.Busy(err)
	}
	isNew := false // whether the view is new and so has only the query's needs
	for range maxRestarts {
		v := c.view(key)
		answer, err := c.answer(ctx, v, q, now)
		switch {
		case err == nil:
			return answer, nil
		case errors.Is(err, errNoRoomInView) && !isNew:
			c.forget(key, v)
			isNew = true
		case errors.Is(err, errTooLarge), errors.Is(err, errNoRoomInView) && c.isAlone(v):
			return c.tooLarge(ctx, v, q)
		case errors.Is(err, errNoRoomInView):
			return lists.Answer{}, fault.Busy(errMemoryBusy)
		case errors.Is(err, errLongTail):
			c.logTooLarge(ctx, key, q, err)
			return lists.Answer{}, err
		case errors.Is(err, errOutdated):
			c.forget(key, v)
		case errors.Is(err, errColumns):
			if err := c.addColumns(ctx, key); err != nil {
				return lists.Answer{}, err
			}
			c.forget(key, v)
		case errors.Is(err, index.ErrNotBuilt), index.Damaged(err):
			c.forget(key, v)
			return lists.Answer{}, c.rebuild(ctx, key, err)
		case errors.Is(err, columnar.ErrNewer):
			c.forget(key, v)
			c.cfg.Logger.WarnContext(ctx, "an index is newer", "organizationId", org, "list", list.Name, "error", err)
			return lists.Answer{}, fault.Busy(err)
		default:
			return lists.Answer{}, err
		}
	}
	return lists.Answer{}, fault.Busy(fmt.Errorf("the index of %s changed %d times while it was read", list.Name, maxRestarts))
}

// answer asks a view, once it is fresh and has what the query needs.
func (c *Cache) answer(ctx context.Context, v *cachedView, q columnar.Query, now bool) (lists.Answer, error) {
	budget := time.NewTimer(waitBudget)
	defer budget.Stop()
	read := uint64(0)
	if now {
		read = v.nextRead()
	}
	for asked := c.cfg.Clock(); ; {
		if v.fresh(asked) && v.has(read) {
			if !v.hasColumns(&q) {
				return lists.Answer{}, errColumns
			}
			if answer, ok, err := c.ask(v, q); ok || err != nil {
				return answer, err
			}
		}
		if ctx.Err() != nil { // a request that was called off starts no load
			return lists.Answer{}, fault.Busy(ctx.Err())
		}
		if err := c.prepare(ctx, v, q, read, budget.C); err != nil {
			return lists.Answer{}, err
		}
	}
}

// ask asks a view; false when something is missing for the query.
func (c *Cache) ask(v *cachedView, q columnar.Query) (lists.Answer, bool, error) {
	if work := v.view.WorkMemory(&q); work > 0 {
		if err := c.roomFor(v, work); err != nil {
			return lists.Answer{}, false, err
		}
		if !c.reserve(v, &v.use.queryBytes, work) {
			return lists.Answer{}, false, fault.Busy(errMemoryBusy)
		}
		defer c.measure(v, &v.use.queryBytes, work)
	}
	answer, ok := v.query(q)
	return answer, ok, nil
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
	if err := c.requestRebuild(ctx, key); err != nil {
		return err
	}
	return fault.Busy(cause)
}

// addColumns asks for the index that has all columns; until it exists, queries that
// use a new column are told to come again. It returns nil once it exists.
func (c *Cache) addColumns(ctx context.Context, key index.Key) error {
	own, err := c.storage.Manifest(ctx, key.Org, key.List.Name, key.Layout().Live())
	if err != nil || own != nil {
		return err
	}
	if err := c.requestRebuild(ctx, key); err != nil {
		return err
	}
	return fault.Busy(errColumns)
}

// requestRebuild asks for the list to be built, at most once each rebuildWait.
func (c *Cache) requestRebuild(ctx context.Context, key index.Key) error {
	c.mu.Lock()
	now := c.cfg.Clock()
	recent := now.Sub(c.rebuildRequestedAt[key]) < rebuildWait
	if !recent {
		c.rebuildRequestedAt[key] = now
	}
	c.mu.Unlock()
	if recent {
		return nil
	}
	if err := key.RequestRebuild(ctx, c.storage, value.TimeOf(now)); err != nil {
		return err
	}
	if c.cfg.Start != nil {
		key.StartJob(ctx, c.cfg.Start, c.cfg.Logger)
	}
	return nil
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
	v.requests++
	return v
}

// isAlone reports whether one request only has asked a view, so that it has no more than
// that request needs.
func (c *Cache) isAlone(v *cachedView) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return v.requests == 1
}

func (c *Cache) forget(key index.Key, v *cachedView) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.views[key] == v {
		delete(c.views, key)
	}
}
