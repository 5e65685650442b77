package indexing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/pause"
)

// entry is the view of one list: the parts that queries needed, from segments,
// and all changes of the tail since the manifest that it began with. Whatever
// becomes of segments afterwards, it is complete as long as it follows the
// tail; of a later manifest it needs only what it has not loaded yet.
type entry struct {
	storage
	view *columnar.View

	// flight is held by the one goroutine that changes the view; others read
	// what mu guards.
	flight singleflight.Group

	mu        sync.RWMutex
	manifest  *manifest // nil before the first look
	version   uint64
	sequence  uint64            // of the tail, up to which it was followed
	touched   map[int32]bool    // parts of which the tail brought changes to the view
	opened    map[int32]*opened // parts that are in the view
	refreshed time.Time
	gapSince  time.Time

	used  time.Time // guarded by Views.mu, as is bytes
	bytes int64
}

// opened is a part that is in the view, with the segments that it came from.
type opened struct {
	groups   columnar.GroupSet
	stored   []*segment
	segments []*columnar.Segment
}

// core is the group that every query reads.
const core = columnar.GroupSet(1) << columnar.Core

// errOutdated says that a view cannot go on from what it has, and that another
// one can begin.
var errOutdated = errors.New("the view is outdated")

func newEntry(s storage) *entry {
	return &entry{storage: s, view: columnar.NewView(s.list.Schema), touched: map[int32]bool{}, opened: map[int32]*opened{}}
}

// fresh says whether the view is as new as it has to be for one who asked at a
// moment.
func (e *entry) fresh(asked time.Time) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.manifest != nil && e.sequence >= e.manifest.covered && asked.Sub(e.refreshed) < Freshness
}

// refresh follows the tail, unless the view is fresh.
func (e *entry) refresh(ctx context.Context) error {
	now := e.clock()
	if e.fresh(now) {
		return nil
	}
	if e.manifest == nil {
		if err := e.readManifest(ctx); err != nil {
			return err
		}
	}
	for delay := shortPause; ; delay *= 2 {
		if err := e.follow(ctx, now); err != nil {
			return fmt.Errorf("follow the tail of %s: %w", e.list.Name, err)
		}
		if e.caughtUp(now) {
			return nil
		}
		if delay > longPause {
			return fault.Busy(errors.New("the tail is behind the manifest"))
		}
		if err := pause.For(ctx, delay); err != nil {
			return fault.Busy(err)
		}
	}
}

// The table's eventually consistent answers are behind for less than these
// pauses together, which double.
const (
	shortPause = 20 * time.Millisecond
	longPause  = 640 * time.Millisecond
)

// caughtUp says whether the tail was followed to where the manifest's segments
// begin to count, and if so notes when.
func (e *entry) caughtUp(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sequence < e.manifest.covered {
		return false
	}
	e.refreshed = now
	return true
}

// readManifest takes over the manifest as it is now. What is loaded stays as
// it is; the rest is to be loaded by the new one.
func (e *entry) readManifest(ctx context.Context) error {
	m, version, err := e.storage.load(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.manifest == nil:
		e.sequence = m.covered
	case version < e.version || m.rebuild != e.manifest.rebuild:
		return errOutdated
	}
	e.manifest, e.version = m, version
	return nil
}

// follow applies what the tail holds since the last look.
func (e *entry) follow(ctx context.Context, now time.Time) error {
	e.mu.RLock()
	after := e.sequence
	e.mu.RUnlock()
	err := e.tail(ctx, after, false, e.apply)
	if !errors.Is(err, errGap) {
		e.gapSince = time.Time{}
		return err
	}
	// The table's answer may be a little behind in places: what is before the
	// gap counts, and the rest has time.
	if e.gapSince.IsZero() {
		e.gapSince = now
	}
	if now.Sub(e.gapSince) < gapPatience {
		return nil
	}
	return err
}

func (e *entry) apply(sequence uint64, found tailEntry) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if found.rebuilt > e.version {
		return errOutdated
	}
	e.view.Apply(plain(found.documents))
	for i := range found.documents {
		e.touched[found.documents[i].part] = true
	}
	e.sequence = sequence
	return nil
}

// wants is what a query lacks: parts that are not in the view, and groups of
// those that are.
type wants struct {
	parts  []int32
	groups columnar.GroupSet
}

func (w wants) nothing() bool { return len(w.parts) == 0 && w.groups == 0 }

// query answers a query, or says what it lacks.
func (e *entry) query(q columnar.Query) (columnar.Result, wants) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	w, before, beside := e.plan(q)
	if !w.nothing() {
		return columnar.Result{}, w
	}
	return e.view.QueryBeside(q, before, beside), w
}

// lacks says what a query lacks.
func (e *entry) lacks(q columnar.Query) wants {
	e.mu.RLock()
	defer e.mu.RUnlock()
	w, _, _ := e.plan(q)
	return w
}

// plan says what a query lacks or, when that is nothing, how the parts that
// are not in the view count. It is called under mu.
func (e *entry) plan(q columnar.Query) (w wants, before, beside int) {
	needs := e.list.Schema.Needs(&q)
	var closed []int32
	var summaries []columnar.Summary
	for i := range e.manifest.parts {
		p := &e.manifest.parts[i]
		switch {
		case e.opened[p.number] != nil:
			if needs&^e.opened[p.number].groups != 0 {
				w.groups = needs
			}
		case p.sealed && !e.touched[p.number]:
			closed, summaries = append(closed, p.number), append(summaries, p.summary)
		default:
			w.parts = append(w.parts, p.number)
		}
	}
	if w.nothing() {
		var open []int
		open, before, beside = e.view.Plan(q, summaries)
		for _, i := range open {
			w.parts = append(w.parts, closed[i])
		}
	}
	if len(w.parts) > 0 {
		w.groups = needs
	}
	return w, before, beside
}

// load brings parts into the view, and groups of those that are in it. What is
// new comes from the manifest as it is now. Groups that are missing come from
// where the part came from; where that was replaced, the view begins again.
func (e *entry) load(ctx context.Context, w wants) error {
	if err := e.complete(ctx, w.groups); err != nil {
		return err
	}
	if len(w.parts) == 0 {
		return nil
	}
	for failed := uint64(0); ; failed = e.version {
		if err := e.readManifest(ctx); err != nil {
			return err
		}
		err := e.open(ctx, w)
		if !errors.Is(err, errReplaced) || e.version == failed {
			return err
		}
	}
}

// open loads parts that are not in the view.
func (e *entry) open(ctx context.Context, w wants) error {
	var stored []*segment
	var parts []int32
	for _, number := range w.parts {
		p := e.manifest.part(number, false)
		if p == nil || e.opened[number] != nil {
			continue
		}
		parts = append(parts, number)
		stored = append(stored, p.all()...)
	}
	segments, err := e.storage.open(ctx, stored, w.groups)
	if err != nil {
		return fmt.Errorf("load %d parts of %s: %w", len(parts), e.list.Name, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.view.Load(segments...)
	for _, number := range parts {
		n := len(e.manifest.part(number, false).segments)
		e.opened[number] = &opened{groups: w.groups, stored: stored[:n], segments: segments[:n]}
		stored, segments = stored[n:], segments[n:]
	}
	return nil
}

// complete adds groups to the parts that lack them.
func (e *entry) complete(ctx context.Context, groups columnar.GroupSet) error {
	for _, o := range e.opened {
		missing := groups &^ o.groups
		if missing == 0 {
			continue
		}
		data, err := e.read(ctx, o.stored, missing)
		if errors.Is(err, errReplaced) {
			return errOutdated
		}
		if err != nil {
			return err
		}
		for i, segment := range o.segments {
			for g, bytes := range data[i] {
				if bytes == nil {
					continue
				}
				if err := e.view.Fill(segment, columnar.Group(g), bytes); err != nil { //nolint:gosec // one of three
					return fmt.Errorf("load text of %s: %w", e.list.Name, err)
				}
			}
		}
		e.mu.Lock()
		o.groups |= missing
		e.mu.Unlock()
	}
	return nil
}
