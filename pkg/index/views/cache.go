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
// What views take, and what loads under way may add, never passes Config.MaxBytes. The
// manifest says how large segments are; so room is made, by dropping the least recently
// used views, before anything is read. A query that needs more than MaxBytes even in a
// view of its own is refused then. The manifest has the counts and the bounds of the
// times and ids of each partition: so pages in the order of a time, walks by id and
// totals over whole partitions need few of them, however long the list is. A query for
// some ids is answered from the table where the list is too large. A view has no text
// until a query needs some; then a view with text begins. pkg/ops/OPERATING.md, Size, has
// the figures, and TestMemoryStaysWithinItsBudget asks anything.
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
	"strings"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/deadline"
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
	// waitBudget is how long a request waits for the load of another one.
	waitBudget = 3 * time.Second
	// answerReserve is what a load leaves of the request's time, for the answer:
	// API Gateway waits for 29 s of the function's 30.
	answerReserve = 4 * time.Second
	// loadLimit ends a load of a request that has no deadline.
	loadLimit = 5 * time.Minute
)

var (
	errLoading = errors.New("the index is still being loaded")
	// errTooLarge says that what a query needs does not fit into memory.
	errTooLarge = errors.New("more than memory holds")
	// errMemoryBusy says that other requests have the memory that a load needs.
	errMemoryBusy = errors.New("memory is busy")
	// errLongTail says that the tail itself does not fit: jobs are behind.
	errLongTail = errors.New("the tail is too long")
	// errColumns says that the index lacks a column, which the query uses.
	errColumns = errors.New("a new column is not in the index yet")
	// errFields says that the index lacks values of a field, which the query uses.
	errFields = errors.New("a new field is not in the index yet")
	// errOutdated says that a view cannot continue with what it has, so that a new
	// view has to begin.
	errOutdated = errors.New("the view is outdated")
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
	views   map[viewKey]*cachedView
	rebuilt map[index.Key]request
}

// viewKey names a view: of a list, with its text or without.
type viewKey struct {
	index.Key
	text bool
}

// request is the last request to build a list, and why it was made.
type request struct {
	cause error
	at    time.Time
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
	return &Cache{storage: storage, cfg: cfg, views: map[viewKey]*cachedView{}, rebuilt: map[index.Key]request{}}
}

// Query answers a query of the organization's list, as the list was at most
// [Freshness] ago or, with now, as it is: with every entry that its tail had
// when the query came. It fails with list_too_large, a fault of kind Invalid, when the
// query needs more documents than fit into memory. It fails with a fault of kind
// Unavailable when storage or memory is busy, when loading takes longer than its
// budget, when the index is damaged, and when it is still to be built.
func (c *Cache) Query(ctx context.Context, org value.ID, list *index.List, q columnar.Query, now bool) (lists.Answer, error) {
	return c.QueryWeighed(ctx, org, list, q, now, func(int) error { return nil })
}

// QueryWeighed is Query that asks admit before it reads segments and before it answers,
// and fails with its error. admit gets the read units that the segments would take if
// nothing were in memory. A query that memory is too small for is not weighed.
func (c *Cache) QueryWeighed(
	ctx context.Context, org value.ID, list *index.List, q columnar.Query, now bool, admit func(units int) error,
) (lists.Answer, error) {
	key := index.Key{Org: org, List: list}
	if err := c.knownDamage(key); err != nil {
		return lists.Answer{}, fault.Busy(err)
	}
	text := list.Schema.NeedsText(&q)
	for range maxRestarts {
		v := c.view(key, text)
		answer, err := c.answer(ctx, v, q, now, admit)
		switch {
		case err == nil:
			return answer, admit(v.units(&q))
		case errors.Is(err, errOutdated), errors.Is(err, errTooLarge) && v.key.text && !text:
			c.forget(v)
		case errors.Is(err, errTooLarge):
			return c.tooLarge(ctx, v, q)
		case errors.Is(err, errColumns), errors.Is(err, index.ErrNotBuilt), index.Damaged(err):
			unbuilt := c.rebuild(ctx, key, err)
			if unbuilt == nil || !errors.Is(err, errColumns) { // others' queries need no column that the list lacks
				c.forget(v)
			}
			if unbuilt != nil {
				return lists.Answer{}, unbuilt
			}
		case errors.Is(err, columnar.ErrNewer):
			c.forget(v)
			c.cfg.Logger.WarnContext(ctx, "an index is newer", "organizationId", org, "list", list.Name, "error", err)
			return lists.Answer{}, fault.Busy(err)
		case errors.Is(err, errFields):
			return lists.Answer{}, beingBuilt()
		case errors.Is(err, errLongTail):
			c.logTooLarge(ctx, key, q, err)
			return lists.Answer{}, err
		default:
			return lists.Answer{}, err
		}
	}
	return lists.Answer{}, fault.Busy(fmt.Errorf("the index of %s changed %d times while it was read", list.Name, maxRestarts))
}

// answer asks a view, once it is fresh and has what the query needs: what it lacks is
// loaded within this request.
func (c *Cache) answer(ctx context.Context, v *cachedView, q columnar.Query, now bool, admit func(int) error) (lists.Answer, error) {
	asked, read := c.cfg.Clock(), uint64(0)
	if now {
		read = v.nextRead()
	}
	if answer, ok, err := v.answer(&q, asked, read); ok || err != nil {
		return answer, err
	}
	if ctx.Err() != nil { // a request that was called off starts no load
		return lists.Answer{}, fault.Busy(ctx.Err())
	}
	if err := v.beginLoad(ctx); err != nil {
		return lists.Answer{}, err
	}
	defer v.endLoad()
	limited, cancel := loadTime(ctx)
	defer cancel()
	for {
		if answer, ok, err := v.answer(&q, asked, read); ok || err != nil {
			return answer, err
		}
		if err := c.load(limited, v, q, read, admit); err != nil {
			return lists.Answer{}, err
		}
	}
}

// loadTime is the time that a request has for loading.
func loadTime(ctx context.Context) (context.Context, context.CancelFunc) {
	limited, cancel := deadline.Before(ctx, answerReserve)
	limited, stop := context.WithTimeout(limited, loadLimit)
	return limited, func() { stop(); cancel() }
}

// load brings a view up to date and loads what a query misses, as far as it can be told
// now, once there is room for it.
func (c *Cache) load(ctx context.Context, v *cachedView, q columnar.Query, read uint64, admit func(int) error) error {
	defer c.measure(v)
	if err := v.refresh(ctx, read, func(bytes int64) error { return c.reserve(v, bytes) }); err != nil {
		return err
	}
	if err := v.lacks(&q); err != nil {
		return err
	}
	missing, _, _ := v.missingFor(&q)
	if len(missing) == 0 {
		return nil
	}
	if !v.current {
		if err := v.readManifest(ctx); err != nil {
			return err
		}
		missing, _, _ = v.missingFor(&q)
	}
	if err := c.reserve(v, v.memory(missing)); err != nil {
		return err
	}
	if err := admit(v.units(&q)); err != nil {
		return err
	}
	err := v.load(ctx, missing)
	if failed := v.version; errors.Is(err, index.ErrReplaced) {
		if err := v.readManifest(ctx); err != nil || v.version != failed { // a later one names other chunks
			return err
		}
	}
	return err
}

// beingBuilt is the fault of a query that uses a field before the list has its values.
func beingBuilt() error {
	f := fault.Busy(errFields)
	f.Message, f.RetryAfter = "the list is being built with a field that this request uses; GET /developers/index/fields tells when it is", 30*time.Second
	return f
}

// knownDamage returns the damage that was found in an index a short time ago.
func (c *Cache) knownDamage(key index.Key) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.rebuilt[key]; !errors.Is(last.cause, errColumns) && c.cfg.Clock().Sub(last.at) < rebuildWait {
		return last.cause
	}
	return nil
}

// rebuild asks for a list to be built that is damaged, or lacks columns or the layout of
// this release, at most once each rebuildWait. Until then a damaged index is not read
// again. It returns nil when the list was built meanwhile.
func (c *Cache) rebuild(ctx context.Context, key index.Key, cause error) error {
	if !index.Damaged(cause) {
		if own, err := c.storage.Manifest(ctx, key.Org, key.List.Name, key.Layout().Live()); err != nil || own != nil {
			return err
		}
	}
	c.mu.Lock()
	now := c.cfg.Clock()
	recent := now.Sub(c.rebuilt[key].at) < rebuildWait
	if !recent {
		c.rebuilt[key] = request{cause, now}
	}
	c.mu.Unlock()
	if recent {
		return fault.Busy(cause)
	}
	if !errors.Is(cause, errColumns) {
		c.cfg.Logger.ErrorContext(ctx, "an index is rebuilt", "organizationId", key.Org, "list", key.List.Name, "error", cause)
	}
	if err := key.RequestRebuild(ctx, c.storage, value.TimeOf(now)); err != nil {
		return err
	}
	if c.cfg.Start != nil {
		key.StartJob(ctx, c.cfg.Start, c.cfg.Logger)
	}
	return fault.Busy(cause)
}

// tooLarge answers a query that memory is too small for from the table, if it is for
// some ids, or else refuses it. The view has followed the tail: the table has all that
// the view has, and later changes come with later times.
func (c *Cache) tooLarge(ctx context.Context, v *cachedView, q columnar.Query) (lists.Answer, error) {
	key := v.key
	ids, ok := q.Filter.ByID()
	if !ok || key.List.Get == nil {
		c.logTooLarge(ctx, key.Key, q, errTooLarge)
		return lists.Answer{}, fault.New(fault.Invalid, "list_too_large",
			"the list is too large for this filter, search or order; %s", wayOut(key.List))
	}
	v.mu.RLock()
	syncFrom := v.syncFrom()
	v.mu.RUnlock()
	documents, err := key.List.Get(ctx, key.Org, ids, q.Fields > 0)
	if err != nil {
		return lists.Answer{}, err
	}
	found := columnar.NewView(key.List.Schema)
	found.Apply(documents)
	return lists.Answer{Result: found.Query(q), SyncFrom: syncFrom}, nil
}

// wayOut says what may be asked instead.
func wayOut(list *index.List) string {
	if list.By == index.Whole {
		return "give ids, or walk by id with afterId and without a filter"
	}
	time := strings.TrimSuffix(list.Schema.Column(list.On).Name, "At")
	return "narrow it by " + time + "From and " + time + "To"
}

// logTooLarge logs what the template's alarm watches.
func (c *Cache) logTooLarge(ctx context.Context, key index.Key, q columnar.Query, cause error) {
	c.cfg.Logger.WarnContext(ctx, "a query was too large", "organizationId", key.Org, "list", key.List.Name,
		"orderBy", q.OrderBy, "words", len(q.Search), "offset", q.Offset, "memory", c.cfg.MaxBytes, "cause", cause)
}
