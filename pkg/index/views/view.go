package views

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
	"github.com/commerce-integration/service/pkg/pause"
)

const (
	// maxGapAge is how long a view takes a missing entry of the tail for one
	// that an eventually consistent read does not show yet.
	maxGapAge = 10 * time.Second
	// Eventually consistent reads are behind for less than all pauses together,
	// which double from the first to the last.
	firstPause = 20 * time.Millisecond
	lastPause  = 640 * time.Millisecond
)

// cachedView is the view of one list: the partitions that queries needed, from
// segments, and all changes of the tail since the manifest that it began with.
// Whatever happens to segments later, it is complete as long as it follows the
// tail; it needs a later manifest only to load more.
type cachedView struct {
	index.Index
	clock func() time.Time
	view  *columnar.View

	// flight is held by the one goroutine that changes the view. It reads what mu
	// guards without mu, which is for the others.
	flight singleflight.Group

	mu        sync.RWMutex
	manifest  *index.Manifest // nil before it was read for the first time
	version   uint64
	sequence  uint64                     // of the last tail entry in the view
	changed   map[int32]bool             // partitions that the tail has changed in the view
	loaded    map[int32]*loadedPartition // partitions that are in the view
	refreshed time.Time
	gapSince  time.Time

	used  time.Time // guarded by Cache.mu, as is bytes
	bytes int64
}

// loadedPartition is a partition that is in the view, with the segments that it
// was loaded from.
type loadedPartition struct {
	groups   columnar.ColumnGroupSet
	stored   []*index.Segment
	segments []*segment.Segment
}

// errOutdated says that a view cannot continue with what it has, so that a new
// view has to begin.
var errOutdated = errors.New("the view is outdated")

func newView(x index.Index, clock func() time.Time) *cachedView {
	return &cachedView{
		Index: x, clock: clock, view: columnar.NewView(x.List.Schema),
		changed: map[int32]bool{}, loaded: map[int32]*loadedPartition{},
	}
}

// fresh reports whether the view is new enough for a query of that time.
func (v *cachedView) fresh(asked time.Time) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.manifest != nil && v.sequence >= v.manifest.Covered && asked.Sub(v.refreshed) < Freshness
}

// refresh follows the tail, unless the view is fresh.
func (v *cachedView) refresh(ctx context.Context) error {
	now := v.clock()
	if v.fresh(now) {
		return nil
	}
	if v.manifest == nil {
		if err := v.readManifest(ctx); err != nil {
			return err
		}
	}
	for delay := firstPause; ; delay *= 2 {
		if err := v.follow(ctx, now); err != nil {
			return fmt.Errorf("follow the tail of %s: %w", v.List.Name, err)
		}
		if v.sequence >= v.manifest.Covered {
			v.mu.Lock()
			v.refreshed = now
			v.mu.Unlock()
			return nil
		}
		if delay > lastPause {
			return fault.Busy(errors.New("the tail is behind the manifest"))
		}
		if err := pause.For(ctx, delay); err != nil {
			return fault.Busy(err)
		}
	}
}

// readManifest takes over the live manifest. What is loaded stays as it is; the
// rest will be loaded from the new one.
func (v *cachedView) readManifest(ctx context.Context) error {
	m, version, err := v.Load(ctx)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.manifest == nil:
		v.sequence = m.Covered
	case version < v.version || m.RebuildID != v.manifest.RebuildID:
		return errOutdated
	}
	v.manifest, v.version = m, version
	return nil
}

// follow applies the entries that were appended to the tail since the last
// time.
func (v *cachedView) follow(ctx context.Context, now time.Time) error {
	err := v.Tail(ctx, v.sequence, false, v.apply)
	if !errors.Is(err, index.ErrGap) {
		v.gapSince = time.Time{}
		return err
	}
	// An eventually consistent read may lack single entries. Those before the
	// gap count, and the rest can wait.
	if v.gapSince.IsZero() {
		v.gapSince = now
	}
	if now.Sub(v.gapSince) < maxGapAge {
		return nil
	}
	return err
}

func (v *cachedView) apply(sequence uint64, e index.TailEntry) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.Rebuilt > v.version {
		return errOutdated
	}
	v.view.Apply(e.Documents())
	for i := range e.Changes {
		v.changed[e.Changes[i].Partition] = true
	}
	v.sequence = sequence
	return nil
}

// missing is what a view lacks for a query: partitions, and column groups of
// those that are loaded.
type missing struct {
	partitions []int32
	groups     columnar.ColumnGroupSet
}

func (m missing) none() bool { return len(m.partitions) == 0 && m.groups == 0 }

// query answers a query, unless something is missing for it.
func (v *cachedView) query(q columnar.Query) (columnar.Result, missing) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	m, before, beside := v.missingFor(q)
	if !m.none() {
		return columnar.Result{}, m
	}
	return v.view.QueryWithOffset(q, before, beside), m
}

// missingFor returns what is missing for a query or, when that is nothing, how
// many documents of the partitions that are not loaded come before the page, and
// how many there are. Its caller holds mu or flight.
func (v *cachedView) missingFor(q columnar.Query) (m missing, before, beside int) {
	needs := v.List.Schema.Needs(&q)
	var closed []int32
	var summaries []columnar.Summary
	for _, p := range v.manifest.Partitions {
		switch loaded := v.loaded[p.Number]; {
		case loaded != nil:
			if needs&^loaded.groups != 0 {
				m.groups = needs
			}
		case p.Sealed && !v.changed[p.Number]:
			closed, summaries = append(closed, p.Number), append(summaries, p.Summary)
		default:
			m.partitions = append(m.partitions, p.Number)
		}
	}
	if m.none() {
		var open []int
		open, before, beside = v.view.Plan(q, summaries)
		for _, i := range open {
			m.partitions = append(m.partitions, closed[i])
		}
	}
	if len(m.partitions) > 0 {
		m.groups = needs
	}
	return m, before, beside
}

// load loads what is missing: partitions from the live manifest, and column
// groups from the segments that their partition was loaded from. Where those
// were replaced, a new view has to begin.
func (v *cachedView) load(ctx context.Context, m missing) error {
	if err := v.addGroups(ctx, m.groups); err != nil || len(m.partitions) == 0 {
		return err
	}
	for failed := uint64(0); ; failed = v.version {
		if err := v.readManifest(ctx); err != nil {
			return err
		}
		err := v.loadPartitions(ctx, m)
		if !errors.Is(err, index.ErrReplaced) || v.version == failed {
			return err
		}
	}
}

// loadPartitions loads the missing partitions.
func (v *cachedView) loadPartitions(ctx context.Context, m missing) error {
	var stored []*index.Segment
	var partitions []*index.Partition
	for _, number := range m.partitions {
		if p := v.manifest.Partition(number); p != nil && v.loaded[number] == nil {
			partitions, stored = append(partitions, p), append(stored, p.Segments...)
		}
	}
	segments, err := v.Open(ctx, stored, m.groups)
	if err != nil {
		return fmt.Errorf("load %d partitions of %s: %w", len(partitions), v.List.Name, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	segment.Load(v.view, segments...)
	for _, p := range partitions {
		n := len(p.Segments)
		v.loaded[p.Number] = &loadedPartition{groups: m.groups, stored: p.Segments, segments: segments[:n]}
		segments = segments[n:]
	}
	return nil
}

// addGroups adds column groups to the loaded partitions that lack them.
func (v *cachedView) addGroups(ctx context.Context, groups columnar.ColumnGroupSet) error {
	for _, p := range v.loaded {
		lacking := groups &^ p.groups
		if lacking == 0 {
			continue
		}
		data, err := v.Read(ctx, p.stored, lacking)
		if errors.Is(err, index.ErrReplaced) {
			return errOutdated
		}
		if err != nil {
			return err
		}
		for i, segment := range p.segments {
			for g, bytes := range data[i] {
				if bytes == nil {
					continue
				}
				if err := segment.Fill(v.view, columnar.ColumnGroup(g), bytes); err != nil { //nolint:gosec // one of three
					return fmt.Errorf("load text of %s: %w", v.List.Name, err)
				}
			}
		}
		v.mu.Lock()
		p.groups |= lacking
		v.mu.Unlock()
	}
	return nil
}
