package indexing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/value"
)

const (
	// Freshness is how old a view may be when it answers.
	Freshness = time.Second
	// loadBudget is how long a request waits for a view to be filled; past it
	// the filling goes on and the request is told to come again.
	loadBudget = 3 * time.Second
	// fillLimit ends a filling that hangs.
	fillLimit = 5 * time.Minute
)

// Log is the change log of the lists.
type Log interface {
	TailEnd(ctx context.Context, org value.ID, list string) (uint64, error)
	TailAfter(ctx context.Context, org value.ID, list string, after uint64, each func(dynamo.TailEntry) error) error
}

// List is what views need to know of a list: its schema and how to read all
// its documents from the table. A document's Visible is set by the views.
type List struct {
	Name   string
	Schema *index.Schema
	Load   func(ctx context.Context, org value.ID, each func(index.Document)) error
}

// Config bounds the views.
type Config struct {
	MaxBytes int64 // memory of all views together; 0 is 256 MiB
	Clock    func() time.Time
}

// Views holds one view per organization and list, the least recently used
// leaving when memory is short. It is safe for concurrent use.
type Views struct {
	log    Log
	cfg    Config
	flight singleflight.Group

	mu    sync.Mutex
	views map[viewKey]*entry
}

type viewKey struct {
	org  value.ID
	list string
}

// entry is a view with the place in the log that it has read up to.
type entry struct {
	view *index.View

	mu        sync.Mutex // held while reading the log
	sequence  uint64
	refreshed time.Time
	used      time.Time // guarded by Views.mu
}

// NewViews returns empty views over the log.
func NewViews(log Log, cfg Config) *Views {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 256 << 20
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	return &Views{log: log, cfg: cfg, views: map[viewKey]*entry{}}
}

// View returns the organization's view of the list, at most [Freshness] old.
// It fails with a fault of kind Unavailable when the table is busy or the
// view takes longer than its budget to fill.
func (v *Views) View(ctx context.Context, org value.ID, list *List) (*index.View, error) {
	key := viewKey{org, list.Name}
	if e := v.get(key); e != nil && !v.lapsed(e) {
		return e.view, v.refresh(ctx, e, org, list)
	}
	filled := v.flight.DoChan(org.String()+list.Name, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fillLimit)
		defer cancel()
		e, err := v.fill(ctx, org, list)
		if err == nil {
			v.put(key, e)
		}
		return e, err
	})
	budget := time.NewTimer(loadBudget)
	defer budget.Stop()
	select {
	case result := <-filled:
		if result.Err != nil {
			return nil, result.Err
		}
		return result.Val.(*entry).view, nil //nolint:forcetypeassert // made above
	case <-budget.C:
		return nil, fault.Busy(errors.New("the view is still being filled"))
	case <-ctx.Done():
		return nil, fault.Busy(ctx.Err())
	}
}

func (v *Views) get(key viewKey) *entry {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.views[key]
	if e != nil {
		e.used = v.cfg.Clock()
	}
	return e
}

// lapsed reports whether the log may have dropped what the view has not read:
// a view that nobody asked for so long is filled again.
func (v *Views) lapsed(e *entry) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return v.cfg.Clock().Sub(e.refreshed) > dynamo.TailRetention/2
}

// put adds an entry and drops those used longest ago while the views take
// more memory than they may; the new one always stays.
func (v *Views) put(key viewKey, e *entry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	e.used = v.cfg.Clock()
	v.views[key] = e
	for len(v.views) > 1 && v.bytes() > v.cfg.MaxBytes {
		oldest := key
		for k, candidate := range v.views {
			if k != key && (oldest == key || candidate.used.Before(v.views[oldest].used)) {
				oldest = k
			}
		}
		delete(v.views, oldest)
	}
}

func (v *Views) bytes() (sum int64) {
	for _, e := range v.views {
		sum += e.view.Bytes()
	}
	return sum
}

// refresh applies what the log holds since the last look. Of concurrent
// callers one reads and the others wait for it.
func (v *Views) refresh(ctx context.Context, e *entry, org value.ID, list *List) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	started := v.cfg.Clock()
	if started.Sub(e.refreshed) < Freshness {
		return nil
	}
	err := v.log.TailAfter(ctx, org, list.Name, e.sequence, func(logged dynamo.TailEntry) error {
		documents, err := readEntry(list.Schema, logged.Body)
		if err != nil {
			return err
		}
		for i := range documents {
			documents[i].Visible = int64(logged.At)
		}
		e.view.Apply(documents)
		e.sequence = logged.Sequence
		return nil
	})
	if err != nil {
		return fmt.Errorf("follow the change log of %s: %w", list.Name, err)
	}
	e.refreshed = started
	return nil
}

// version is one revision of one document.
type version struct {
	id       [16]byte
	sub      uint8
	revision int64
}

// fill makes a view. The log is read before the table, so that no change
// falls between them, and all of what it holds, so that a document shows the
// time at which it became visible to others: a client that asks for what
// became visible since its last request misses nothing, whichever instance
// answers. What the table has and the log does not yet becomes visible now.
func (v *Views) fill(ctx context.Context, org value.ID, list *List) (*entry, error) {
	e := &entry{view: index.NewView(list.Schema), refreshed: v.cfg.Clock()}
	var err error
	if e.sequence, err = v.log.TailEnd(ctx, org, list.Name); err != nil {
		return nil, err
	}
	logged := map[version]int64{}
	err = v.log.TailAfter(ctx, org, list.Name, 0, func(t dynamo.TailEntry) error {
		documents, err := readEntry(list.Schema, t.Body)
		if err != nil {
			return err
		}
		for i := range documents {
			logged[versionOf(&documents[i])] = int64(t.At)
		}
		e.sequence = max(e.sequence, t.Sequence)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the change log of %s: %w", list.Name, err)
	}
	if err := v.load(ctx, e, org, list, logged); err != nil {
		return nil, fmt.Errorf("fill the view of %s: %w", list.Name, err)
	}
	return e, nil
}

func (v *Views) load(ctx context.Context, e *entry, org value.ID, list *List, logged map[version]int64) error {
	now := v.cfg.Clock()
	settled := now.Add(-dynamo.TailRetention).UnixMilli()
	const batch = 4096
	documents := make([]index.Document, 0, batch)
	err := list.Load(ctx, org, func(d index.Document) {
		at, known := logged[versionOf(&d)]
		switch {
		case known:
			d.Visible = at
		case d.Revision < settled:
			d.Visible = d.Revision
		default:
			d.Visible = now.UnixMilli()
		}
		documents = append(documents, d)
		if len(documents) == batch {
			e.view.Apply(documents)
			documents = documents[:0]
		}
	})
	e.view.Apply(documents)
	return err
}

func versionOf(d *index.Document) version { return version{d.ID, d.Sub, d.Revision} }
