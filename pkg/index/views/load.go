package views

import (
	"context"
	"errors"
	"time"

	"github.com/commerce-integration/service/pkg/base/deadline"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

const (
	// waitBudget is how long a request waits for the load of another one.
	waitBudget = 3 * time.Second
	// answerReserve is what a load leaves of the request's time, for the answer:
	// API Gateway waits for 29 s of the function's 30.
	answerReserve = 4 * time.Second
	// loadLimit ends a load of a request that has no deadline.
	loadLimit = 5 * time.Minute
	// maxBatchBytes bounds the bytes read from storage at a time, the first
	// partition apart. What was read stays, so that a load that ran out of time
	// is continued by the next request.
	maxBatchBytes = 16 << 20
	// entryMemory is how many times larger the documents of a tail entry are in
	// a view.
	entryMemory = 4
)

var (
	errLoading = errors.New("the index is still being loaded")
	// errTooLarge says that what a query needs does not fit into memory.
	errTooLarge = errors.New("more than memory holds")
	// errNoRoomInView says that it does not fit into the view.
	errNoRoomInView = errors.New("no room in the view")
	// errMemoryBusy says that other requests have the memory that a load needs.
	errMemoryBusy = errors.New("memory is busy")
	// errLongTail says that the tail itself does not fit: jobs are behind.
	errLongTail = errors.New("the tail is too long")
	// errColumns says that the index lacks a column, which the query uses.
	errColumns = errors.New("a new column is not in the index yet")
)

// load is a load of a view that is under way. Others wait for it.
type load struct {
	done chan struct{}
	err  error // why it failed; nil when only its own request is to blame, for its time or its size
}

// begin returns the load that is under way, or begins one.
func (v *cachedView) begin() (l *load, mine bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.loading != nil {
		return v.loading, false
	}
	v.loading = &load{done: make(chan struct{})}
	return v.loading, true
}

func (v *cachedView) end(l *load) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.loading = nil
	close(l.done)
}

// prepare brings a view up to date and loads what a query misses, within the
// request that came first; nothing goes on after it was answered. The others wait
// until budget, and then their clients may ask again.
func (c *Cache) prepare(ctx context.Context, v *cachedView, q columnar.Query, read uint64, budget <-chan time.Time) error {
	l, mine := v.begin()
	if !mine {
		select {
		case <-l.done:
			return l.err
		case <-budget:
			return fault.Busy(errLoading)
		case <-ctx.Done():
			return fault.Busy(ctx.Err())
		}
	}
	defer v.end(l)
	ctx, cancel := loadTime(ctx)
	defer cancel()
	err := c.load(ctx, v, q, read)
	if ctx.Err() == nil && !errors.Is(err, errTooLarge) && !errors.Is(err, errNoRoomInView) && !errors.Is(err, errColumns) {
		l.err = err
	}
	return err
}

// loadTime is the time that a request has for loading.
func loadTime(ctx context.Context) (context.Context, context.CancelFunc) {
	limited, cancel := deadline.Before(ctx, answerReserve)
	limited, stop := context.WithTimeout(limited, loadLimit)
	return limited, func() { stop(); cancel() }
}

func (c *Cache) load(ctx context.Context, v *cachedView, q columnar.Query, read uint64) error {
	defer func() {
		c.mu.Lock()
		reserved := v.use.loadBytes
		c.mu.Unlock()
		c.measure(v, &v.use.loadBytes, reserved)
	}()
	v.current = false
	v.reserve = func(bytes int64) bool { return c.reserve(v, &v.use.loadBytes, bytes) }
	if err := v.refresh(ctx, read); err != nil {
		return err
	}
	if !v.hasColumns(&q) {
		return errColumns
	}
	for failed := uint64(0); ; failed = v.version {
		err := c.loadMissing(ctx, v, q)
		if !errors.Is(err, index.ErrReplaced) || v.version == failed {
			return err
		}
		v.current = false // another manifest may name other chunks
	}
}

// loadMissing loads what a query misses, once there is room for it.
func (c *Cache) loadMissing(ctx context.Context, v *cachedView, q columnar.Query) error {
	lacking, _, _ := v.missingFor(q)
	if len(lacking.partitions) > 0 && !v.current {
		if err := v.readManifest(ctx); err != nil {
			return err
		}
		lacking, _, _ = v.missingFor(q)
	}
	if err := c.roomFor(v, v.memory(lacking, q)); err != nil {
		return err
	}
	return v.load(ctx, lacking)
}

// memory bounds the memory of loading the missing parts and answering.
func (v *cachedView) memory(m missing, q columnar.Query) int64 {
	schema, n, rows, searched := v.List.Schema, int64(0), 0, 0
	for _, p := range m.partitions {
		n += p.Memory(schema, m.groups)
		rows += p.Rows()
		for _, s := range p.Segments {
			searched += s.Unpacked[columnar.SearchText]
		}
	}
	for _, p := range v.loaded {
		for _, s := range p.stored {
			n += s.Memory(schema, m.groups&^p.groups)
		}
	}
	return n + schema.WorkMemory(&q, rows, searched) + min(stored(m.partitions, m.groups), maxBatchBytes)
}

// stored is how many bytes of storage partitions have.
func stored(partitions []part, groups columnar.ColumnGroupSet) (n int64) {
	for _, p := range partitions {
		n += p.Stored(groups)
	}
	return n
}

// batches cuts partitions into batches to read.
func batches(partitions []part, groups columnar.ColumnGroupSet) (cut [][]part) {
	size := int64(maxBatchBytes)
	for _, p := range partitions {
		if size += p.Stored(groups); size > maxBatchBytes || len(cut) == 0 {
			cut, size = append(cut, nil), p.Stored(groups)
		}
		cut[len(cut)-1] = append(cut[len(cut)-1], p)
	}
	return cut
}
