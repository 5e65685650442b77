package indexing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
)

const (
	// Freshness is how old a view may be when it answers.
	Freshness = time.Second
	// loadBudget is how long a request waits for what its query needs to be
	// loaded; past it the loading goes on and the request is told to come again.
	loadBudget = 3 * time.Second
	// loadLimit ends a loading that hangs.
	loadLimit = 5 * time.Minute
	// lapse is how long a view is of use that nobody asks: after it, reading
	// the index is likely to cost less than reading what the tail has gathered.
	lapse = time.Hour
	// gapPatience is how long a reader takes a missing entry of the tail for one
	// that it cannot see yet.
	gapPatience = 10 * time.Second
	// mendPause is for how long a damaged index is not looked at again.
	mendPause = 3 * time.Second
	// entryBytes is about what a view takes besides its documents.
	entryBytes = 8 << 10
	// attempts bounds how often a query begins again because what it needs was
	// replaced in the meantime.
	attempts = 10
)

// Config bounds the views and says who mends a list.
type Config struct {
	MaxBytes int64 // memory of all views together; 0 is 256 MiB
	Clock    func() time.Time
	Start    Starter // for the rebuild of a list that cannot be read
	Logger   *slog.Logger
}

// Views answers queries of lists. It holds one view for each organization and
// list that is asked for, with those parts that queries needed, and follows
// the list's tail. The least recently used view leaves when memory is short.
// It is safe for concurrent use.
type ViewCache struct {
	table *dynamo.Table
	cfg   Config

	mu      sync.Mutex
	views   map[listKey]*entry
	damaged map[listKey]damage
}

// damage is what is wrong with an index, and since when it is known.
type damage struct {
	err   error
	since time.Time
}

// NewViews returns empty views of the table's lists.
func NewViewCache(table *dynamo.Table, cfg Config) *ViewCache {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 256 << 20
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &ViewCache{table: table, cfg: cfg, views: map[listKey]*entry{}, damaged: map[listKey]damage{}}
}

// Query answers a query of the organization's list, as the list was at most
// [Freshness] ago. It fails with a fault of kind Unavailable when the table is
// busy, when what the query needs takes longer than its budget to load, and
// when the index is damaged: then it is being rebuilt.
func (v *ViewCache) Query(ctx context.Context, org value.ID, list *List, q columnar.Query) (columnar.Result, error) {
	key := listKey{org, list}
	if err := v.known(key); err != nil {
		return columnar.Result{}, fault.Busy(err)
	}
	for range attempts {
		e := v.entry(key)
		result, err := v.answer(ctx, e, q)
		switch {
		case err == nil:
			return result, nil
		case errors.Is(err, errOutdated):
			v.forget(key, e)
		case Damaged(err):
			v.forget(key, e)
			return columnar.Result{}, v.mend(ctx, key, err)
		default:
			return columnar.Result{}, err
		}
	}
	return columnar.Result{}, fault.Busy(fmt.Errorf("the index of %s changed %d times while it was read", list.Name, attempts))
}

// answer asks an entry, once it is up to date and has what the query needs.
func (v *ViewCache) answer(ctx context.Context, e *entry, q columnar.Query) (columnar.Result, error) {
	budget := time.NewTimer(loadBudget)
	defer budget.Stop()
	for asked := v.cfg.Clock(); ; {
		if e.fresh(asked) {
			if result, wanted := e.query(q); wanted.nothing() {
				return result, nil
			}
		}
		select {
		case prepared := <-v.prepare(ctx, e, q):
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

// prepare brings an entry up to date and loads what a query lacks. Of
// concurrent requests for one list one does so and the others wait for it.
func (v *ViewCache) prepare(ctx context.Context, e *entry, q columnar.Query) <-chan singleflight.Result {
	return e.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadLimit)
		defer cancel()
		defer v.shrink(e)
		if err := e.refresh(ctx); err != nil {
			return nil, err
		}
		if wanted := e.lacks(q); !wanted.nothing() {
			return nil, e.load(ctx, wanted)
		}
		return nil, nil
	})
}

// known returns what was found wrong with an index a short time ago.
func (v *ViewCache) known(key listKey) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	d, ok := v.damaged[key]
	if ok && v.cfg.Clock().Sub(d.since) < mendPause {
		return d.err
	}
	delete(v.damaged, key)
	return nil
}

// mend asks for a damaged index to be rebuilt. Until that may have been done,
// nobody looks again.
func (v *ViewCache) mend(ctx context.Context, key listKey, wrong error) error {
	v.cfg.Logger.ErrorContext(ctx, "an index is rebuilt", "organizationId", key.org, "list", key.list.Name, "error", wrong)
	v.mu.Lock()
	v.damaged[key] = damage{wrong, v.cfg.Clock()}
	v.mu.Unlock()
	if err := requestRebuild(ctx, v.table, key.org, key.list, value.TimeOf(v.cfg.Clock())); err != nil {
		return err
	}
	if v.cfg.Start != nil {
		if err := v.cfg.Start.Send(ctx, key.org, key.list.Name); err != nil {
			v.cfg.Logger.WarnContext(ctx, "a job starts late", "organizationId", key.org, "list", key.list.Name, "error", err)
		}
	}
	return fault.Busy(wrong)
}

// entry returns the view of a list, a new one when there is none or it has
// lapsed.
func (v *ViewCache) entry(key listKey) *entry {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.cfg.Clock()
	e := v.views[key]
	if e == nil || now.Sub(e.used) > lapse {
		e = newEntry(storage{v.table, key.org, key.list, v.cfg.Clock})
		v.views[key] = e
	}
	e.used = now
	return e
}

func (v *ViewCache) forget(key listKey, e *entry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.views[key] == e {
		delete(v.views, key)
	}
}

// shrink drops the views used longest ago while all take more memory than
// they may. The one that has just grown stays, whatever its size.
func (v *ViewCache) shrink(grown *entry) {
	size := grown.view.Bytes() + entryBytes
	v.mu.Lock()
	defer v.mu.Unlock()
	grown.bytes = size
	total := int64(0)
	for _, e := range v.views {
		total += e.bytes
	}
	for total > v.cfg.MaxBytes && len(v.views) > 1 {
		var oldest listKey
		var found *entry
		for key, e := range v.views {
			if e != grown && (found == nil || e.used.Before(found.used)) {
				oldest, found = key, e
			}
		}
		if found == nil {
			return
		}
		total -= found.bytes
		delete(v.views, oldest)
	}
}
