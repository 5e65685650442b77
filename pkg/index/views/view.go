package views

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
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
	cacheKey index.Key
	clock    func() time.Time

	// reserve makes room for the load under way, before it reads.
	reserve func(bytes int64) bool

	// The one goroutine with the load under way changes the view. It reads what
	// mu guards without mu, which is for the others.
	mu          sync.RWMutex
	index.Index // in the layout of the manifest
	view        *columnar.View
	loading     *load           // nil when none is under way
	manifest    *index.Manifest // nil before it was read for the first time
	version     uint64
	current     bool                             // the load under way has read the manifest
	sequence    uint64                           // of the last tail entry in the view
	at          value.Time                       // of the same
	changed     map[index.Range]bool             // partitions that the tail has changed in the view
	loaded      map[index.Range]*loadedPartition // partitions that are in the view, as they were when loaded
	parts       []part                           // the partitions of the manifest, in its order
	refreshed   time.Time
	gapSince    time.Time
	begun       uint64 // strongly consistent reads of the tail so far
	read        uint64 // the number of the last of them that is in the view

	used     time.Time // guarded by Cache.mu, as are the next two
	requests int       // that have asked it
	use      memoryUse
}

// part is a partition of the manifest, as the view has it.
type part struct {
	*index.Partition
	at      index.Range
	loaded  *loadedPartition // all its documents are in the view; else nil
	touched bool             // some documents are, from the tail
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
		cacheKey: x.Key, Index: x, clock: clock, view: columnar.NewView(x.List.Schema),
		changed: map[index.Range]bool{}, loaded: map[index.Range]*loadedPartition{},
	}
}

// fresh reports whether the view is new enough for a query of that time.
func (v *cachedView) fresh(asked time.Time) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.manifest != nil && v.sequence >= v.manifest.Covered && asked.Sub(v.refreshed) < Freshness
}

// nextRead is the number of the first strongly consistent read of the tail that
// begins from now on.
func (v *cachedView) nextRead() uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.begun + 1
}

// has reports whether a strongly consistent read is in the view; 0 always is.
func (v *cachedView) has(read uint64) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.read >= read
}

// hasColumns reports whether the documents have every column that a query uses.
// One that was declared lately is not in an index that an earlier release wrote.
func (v *cachedView) hasColumns(q *columnar.Query) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.cacheKey.List.Schema.Uses(q) <= v.List.Schema.Len()
}

// refresh follows the tail, unless the view is fresh and has the read.
func (v *cachedView) refresh(ctx context.Context, read uint64) error {
	now := v.clock()
	consistent := !v.has(read)
	if v.fresh(now) && !consistent {
		return nil
	}
	if v.manifest == nil {
		if err := v.readManifest(ctx); err != nil {
			return err
		}
	}
	for delay := firstPause; ; delay *= 2 {
		if err := v.follow(ctx, now, consistent); err != nil {
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
	own := index.Index{Key: v.cacheKey, Reader: v.Reader}
	m, version, err := own.Load(ctx)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.manifest == nil:
		v.sequence, v.at = m.Covered, m.CoveredAt
		v.Index = own.As(m.Layout)
		v.view = columnar.NewView(v.List.Schema)
	case m.Layout != v.manifest.Layout || version < v.version || m.RebuildID != v.manifest.RebuildID:
		return errOutdated
	}
	v.manifest, v.version, v.current = m, version, true
	return v.arrange()
}

// arrange finds which partitions of the manifest are in the view. It fails with
// errOutdated where one that is has been divided or dropped since. Its caller holds mu.
func (v *cachedView) arrange() error {
	v.parts = make([]part, len(v.manifest.Partitions))
	known, numbers := map[index.Range]bool{}, map[int32]bool{}
	for i, p := range v.manifest.Partitions {
		at := v.manifest.Range(i)
		v.parts[i] = part{Partition: p, at: at, loaded: v.loaded[at], touched: v.changed[at]}
		known[at], numbers[p.Number] = true, true
	}
	for at := range v.loaded {
		if !known[at] {
			return errOutdated
		}
	}
	for at := range v.changed {
		if !known[at] && numbers[at.Number] {
			return errOutdated
		}
	}
	return nil
}

// follow applies the entries that were appended to the tail since the last
// time.
func (v *cachedView) follow(ctx context.Context, now time.Time, consistent bool) error {
	if consistent {
		return v.followAll(ctx)
	}
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

// followAll applies every entry that there is.
func (v *cachedView) followAll(ctx context.Context) error {
	v.mu.Lock()
	v.begun++
	v.mu.Unlock()
	if err := v.Tail(ctx, v.sequence, true, v.apply); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.read, v.gapSince = v.begun, time.Time{}
	return nil
}

func (v *cachedView) apply(sequence uint64, e index.TailEntry) error {
	if e.Replaces(v.cacheKey, v.manifest, v.version) {
		return errOutdated
	}
	if !v.reserve(entryMemory * int64(e.Size)) {
		if len(v.loaded) == 0 {
			return fault.Busy(errLongTail)
		}
		return errNoRoomInView
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.view.Apply(e.Documents())
	for i := range e.Changes {
		v.touch(&e.Changes[i])
	}
	v.sequence, v.at = sequence, e.At
	return nil
}

// touch notes that the tail has changed a document. Its caller holds mu.
func (v *cachedView) touch(c *index.Change) {
	at := index.Range{Number: c.Partition}
	if i, found := v.manifest.Find(c.Partition, c.ID); found {
		at, v.parts[i].touched = v.parts[i].at, true
	}
	v.changed[at] = true
}

// missing is what a view lacks for a query: partitions, and column groups of
// those that are loaded.
type missing struct {
	partitions []part
	groups     columnar.ColumnGroupSet
}

func (m missing) none() bool { return len(m.partitions) == 0 && m.groups == 0 }

// query answers a query, unless something is missing for it.
func (v *cachedView) query(q columnar.Query) (answer lists.Answer, ok bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	m, before, beside := v.missingFor(q)
	if !m.none() {
		return lists.Answer{}, false
	}
	return lists.Answer{Result: v.view.QueryWithOffset(q, before, beside), SyncFrom: v.syncFrom()}, true
}

// syncFrom is the least time that the next entry of the tail can have; the
// beginning of time when the view knows no entry's time. Its caller holds mu or
// loads.
func (v *cachedView) syncFrom() value.Time {
	if v.at == 0 {
		return 0
	}
	return v.at + 1
}

// missingFor returns the parts that a query lacks or, when it lacks none, how
// many documents of the partitions that are not loaded come before the page, and
// how many there are. Its caller holds mu or loads.
func (v *cachedView) missingFor(q columnar.Query) (m missing, before, beside int) {
	if q.Filter.Nowhere() {
		return m, 0, 0
	}
	needs := v.List.Schema.Needs(&q)
	var closed []part
	var summaries []columnar.Summary
	for _, p := range v.parts {
		switch {
		case p.loaded != nil:
			if needs&^p.loaded.groups != 0 {
				m.groups = needs
			}
		case p.Sealed && !p.touched:
			closed, summaries = append(closed, p), append(summaries, p.Summary)
		default:
			m.partitions = append(m.partitions, p)
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

// load loads missing parts: partitions from the manifest, and column groups from the
// segments that their partition was loaded from.
func (v *cachedView) load(ctx context.Context, m missing) error {
	if err := v.addGroups(ctx, m.groups); err != nil {
		return err
	}
	for _, batch := range batches(m.partitions, m.groups) {
		if err := v.loadBatch(ctx, batch, m.groups); err != nil {
			return err
		}
	}
	return nil
}

func (v *cachedView) loadBatch(ctx context.Context, partitions []part, groups columnar.ColumnGroupSet) error {
	if ctx.Err() != nil {
		return fault.Busy(errLoading)
	}
	var stored []*index.Segment
	memory := int64(0)
	for _, p := range partitions {
		stored = append(stored, p.Segments...)
		memory += p.Memory(v.List.Schema, groups)
	}
	if !v.reserve(memory) {
		return fault.Busy(errMemoryBusy)
	}
	segments, err := v.Open(ctx, stored, groups)
	if err != nil {
		return fmt.Errorf("load %d partitions of %s: %w", len(partitions), v.List.Name, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	segment.Load(v.view, segments...)
	for _, p := range partitions {
		n := len(p.Segments)
		v.loaded[p.at] = &loadedPartition{groups: groups, stored: p.Segments, segments: segments[:n]}
		segments = segments[n:]
	}
	return v.arrange()
}

// addGroups adds column groups to the loaded partitions that lack them.
func (v *cachedView) addGroups(ctx context.Context, groups columnar.ColumnGroupSet) error {
	for _, p := range v.loaded {
		lacking := groups &^ p.groups
		if lacking == 0 {
			continue
		}
		memory := int64(0)
		for _, s := range p.stored {
			memory += s.Memory(v.List.Schema, lacking)
		}
		if !v.reserve(memory) {
			return fault.Busy(errMemoryBusy)
		}
		data, err := v.Read(ctx, p.stored, lacking)
		if errors.Is(err, index.ErrReplaced) {
			return errOutdated // a new view loads what has replaced them
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
