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
	// maxBatchBytes bounds the bytes read from storage at a time, the first
	// partition apart. What was read stays, so that a load that ran out of time
	// is continued by the next request.
	maxBatchBytes = 16 << 20
	// entryMemory is how many times larger the documents of a tail entry are in
	// a view.
	entryMemory = 4
	// unitBytes is what a read unit of the table reads, eventually consistent.
	unitBytes = 8 << 10
)

// cachedView is the view of one list: the partitions that queries needed, from
// segments, and all changes of the tail since the manifest that it began with.
// Whatever happens to segments later, it is complete as long as it follows the
// tail; it needs a later manifest only to load more.
type cachedView struct {
	key     viewKey
	clock   func() time.Time
	loading chan struct{} // full while a request has the view to load more

	// The one request that loads changes the view. It reads what mu guards without
	// mu, which is for the others.
	mu          sync.RWMutex
	index.Index // in the layout of the manifest
	view        *columnar.View
	manifest    *index.Manifest // nil before it was read for the first time
	version     uint64
	current     bool                 // the request that loads has read the manifest
	sequence    uint64               // of the last tail entry in the view
	at          value.Time           // of the same
	changed     map[index.Range]bool // partitions that the tail has changed in the view
	loaded      map[index.Range]bool // partitions that are in the view
	parts       []part               // the partitions of the manifest, in its order
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
	loaded  bool // all its documents are in the view
	touched bool // some documents are, from the tail
}

func newView(x index.Index, text bool, clock func() time.Time) *cachedView {
	v := &cachedView{
		key: viewKey{x.Key, text}, clock: clock, loading: make(chan struct{}, 1),
		changed: map[index.Range]bool{}, loaded: map[index.Range]bool{},
	}
	v.reset(x)
	return v
}

// reset empties the view for an index.
func (v *cachedView) reset(x index.Index) {
	v.Index, v.view = x, columnar.NewCoreView(x.List.Schema)
	if v.key.text {
		v.view = columnar.NewView(x.List.Schema)
	}
}

// beginLoad waits until no other request loads.
func (v *cachedView) beginLoad(ctx context.Context) error {
	budget := time.NewTimer(waitBudget)
	defer budget.Stop()
	select {
	case v.loading <- struct{}{}:
		v.current = false
		return nil
	case <-budget.C:
		return fault.Busy(errLoading)
	case <-ctx.Done():
		return fault.Busy(ctx.Err())
	}
}

func (v *cachedView) endLoad() { <-v.loading }

// fresh reports whether the view is new enough for a query of that time, and has the
// strongly consistent read of that number. Its caller holds mu or loads.
func (v *cachedView) fresh(asked time.Time, read uint64) bool {
	return v.manifest != nil && v.sequence >= v.manifest.Covered && asked.Sub(v.refreshed) < Freshness && v.read >= read
}

// nextRead is the number of the first strongly consistent read of the tail that
// begins from now on.
func (v *cachedView) nextRead() uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.begun + 1
}

// lacks fails with errColumns or errFields when the documents lack a column, or a field
// of the organization, that a query uses. A column that was declared lately is not in an
// index that an earlier release wrote. Its caller holds mu or loads.
func (v *cachedView) lacks(q *columnar.Query) error {
	switch {
	case v.key.List.Schema.Uses(q) > v.List.Schema.Len():
		return errColumns
	case q.Fields > v.manifest.Fields:
		return errFields
	}
	return nil
}

// refresh follows the tail, unless the view is fresh and has the read. It reserves memory
// for what it finds.
func (v *cachedView) refresh(ctx context.Context, read uint64, reserve func(bytes int64) error) error {
	now := v.clock()
	if v.fresh(now, read) {
		return nil
	}
	if v.manifest == nil {
		if err := v.readManifest(ctx); err != nil {
			return err
		}
	}
	apply := func(sequence uint64, e index.TailEntry) error { return v.apply(sequence, e, reserve) }
	for delay := firstPause; ; delay *= 2 {
		if err := v.follow(ctx, now, v.read < read, apply); err != nil {
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
	own := index.Index{Key: v.key.Key, Reader: v.Reader}
	m, version, err := own.Load(ctx)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.manifest == nil:
		v.sequence, v.at = m.Covered, m.CoveredAt
		v.reset(own.As(m.Layout))
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
func (v *cachedView) follow(ctx context.Context, now time.Time, consistent bool, apply func(uint64, index.TailEntry) error) error {
	if consistent {
		return v.followAll(ctx, apply)
	}
	err := v.Tail(ctx, v.sequence, false, apply)
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
func (v *cachedView) followAll(ctx context.Context, apply func(uint64, index.TailEntry) error) error {
	v.mu.Lock()
	v.begun++
	v.mu.Unlock()
	if err := v.Tail(ctx, v.sequence, true, apply); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.read, v.gapSince = v.begun, time.Time{}
	return nil
}

func (v *cachedView) apply(sequence uint64, e index.TailEntry, reserve func(bytes int64) error) error {
	if e.Replaces(v.key.Key, v.manifest, v.version) {
		return errOutdated
	}
	if reserve(entryMemory*int64(e.Size)) != nil {
		if len(v.loaded) == 0 {
			return fault.Busy(errLongTail)
		}
		return errOutdated
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

// answer answers a query of a time, unless the view is too old or lacks something.
func (v *cachedView) answer(q *columnar.Query, asked time.Time, read uint64) (answer lists.Answer, ok bool, err error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if !v.fresh(asked, read) {
		return lists.Answer{}, false, nil
	}
	if err := v.lacks(q); err != nil {
		return lists.Answer{}, false, err
	}
	missing, before, beside := v.missingFor(q)
	if len(missing) > 0 {
		return lists.Answer{}, false, nil
	}
	return lists.Answer{Result: v.view.QueryWithOffset(*q, before, beside), SyncFrom: v.syncFrom()}, true, nil
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

// missingFor returns the partitions that a query lacks or, when it lacks none, how
// many documents of the partitions that are not loaded come before the page, and
// how many there are. Its caller holds mu or loads.
func (v *cachedView) missingFor(q *columnar.Query) (missing []part, before, beside int) {
	if q.Filter.Nowhere() {
		return nil, 0, 0
	}
	var closed []part
	var summaries []columnar.Summary
	for _, p := range v.parts {
		switch {
		case p.loaded:
		case p.Sealed && !p.touched:
			closed, summaries = append(closed, p), append(summaries, p.Summary)
		default:
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		return missing, 0, 0
	}
	open, before, beside := v.view.Plan(*q, summaries)
	for _, i := range open {
		missing = append(missing, closed[i])
	}
	return missing, before, beside
}

// units are the read units of the partitions that a query would open first if the view
// were empty, as the manifest says.
func (v *cachedView) units(q *columnar.Query) int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if q.Filter.Nowhere() {
		return 0
	}
	bytes, text := 0, v.List.Schema.NeedsText(q)
	var sealed []part
	var summaries []columnar.Summary
	for _, p := range v.parts {
		if p.Sealed {
			sealed, summaries = append(sealed, p), append(summaries, p.Summary)
		} else {
			bytes += p.Bytes(text)
		}
	}
	open, _, _ := columnar.NewView(v.List.Schema).Plan(*q, summaries)
	for _, i := range open {
		bytes += sealed[i].Bytes(text)
	}
	return (bytes + unitBytes - 1) / unitBytes
}

// memory bounds the memory of loading partitions.
func (v *cachedView) memory(partitions []part) (n int64) {
	stored := 0
	for _, p := range partitions {
		n += p.Memory(v.List.Schema, v.key.text)
		stored += p.Bytes(v.key.text)
	}
	return n + int64(min(stored, maxBatchBytes))
}

// load loads partitions from the manifest.
func (v *cachedView) load(ctx context.Context, partitions []part) error {
	for len(partitions) > 0 {
		n, size := 0, 0
		for ; n < len(partitions) && (n == 0 || size+partitions[n].Bytes(v.key.text) <= maxBatchBytes); n++ {
			size += partitions[n].Bytes(v.key.text)
		}
		if err := v.loadBatch(ctx, partitions[:n]); err != nil {
			return err
		}
		partitions = partitions[n:]
	}
	return nil
}

func (v *cachedView) loadBatch(ctx context.Context, partitions []part) error {
	if ctx.Err() != nil {
		return fault.Busy(errLoading)
	}
	var stored []*index.Segment
	for _, p := range partitions {
		stored = append(stored, p.Segments...)
	}
	segments, err := v.Open(ctx, stored, v.key.text)
	if err != nil {
		return fmt.Errorf("load %d partitions of %s: %w", len(partitions), v.List.Name, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	segment.Load(v.view, segments...)
	for _, p := range partitions {
		v.loaded[p.at] = true
	}
	return v.arrange()
}
