package views

import (
	"cmp"
	"slices"

	"github.com/commerce-integration/service/pkg/base/fault"
)

// viewOverhead is about what a view takes in addition to its documents, in bytes.
const viewOverhead = 8 << 10

// memoryUse is what a view takes of the cache's memory, in bytes. Cache.mu
// guards it.
type memoryUse struct {
	held       int64 // as measured last
	loadBytes  int64 // reserved for the load under way
	queryBytes int64 // reserved for queries under way
}

func (m *memoryUse) total() int64 { return m.held + m.loadBytes + m.queryBytes }

func (m *memoryUse) busy() bool { return m.loadBytes+m.queryBytes > 0 }

// reserve makes room for bytes and counts them as taken, in what counts them.
// The least recently used views leave first, except the one given. It reports
// false, and changes nothing, when there would be too little room even without
// them.
func (c *Cache) reserve(keep *cachedView, counter *int64, bytes int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.makeRoom(keep, bytes) {
		return false
	}
	*counter += bytes
	return true
}

// makeRoom drops views until so many bytes are free. Its caller holds mu.
func (c *Cache) makeRoom(keep *cachedView, bytes int64) bool {
	taken, free := int64(0), int64(0)
	if c.views[keep.cacheKey] != keep {
		taken += keep.use.total() // it left already, and still answers
	}
	var idle []*cachedView
	for _, v := range c.views {
		taken += v.use.total()
		if v != keep && !v.use.busy() {
			idle = append(idle, v)
			free += v.use.held
		}
	}
	if taken-free+bytes > c.cfg.MaxBytes {
		return false
	}
	slices.SortFunc(idle, func(a, b *cachedView) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(b.use.held, a.use.held)) })
	for _, v := range idle {
		if taken+bytes <= c.cfg.MaxBytes {
			break
		}
		taken -= v.use.held
		delete(c.views, v.cacheKey)
	}
	return true
}

// roomFor fails when a view cannot grow by so many bytes, even if all others leave
// that nothing uses: with errTooLarge when no view can, with errNoRoomInView when a new
// view could.
func (c *Cache) roomFor(v *cachedView, bytes int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	own, busy := v.use.total(), int64(0)
	for _, other := range c.views {
		if other != v && other.use.busy() {
			busy += other.use.total()
		}
	}
	switch {
	case bytes > c.cfg.MaxBytes:
		return errTooLarge
	case own+bytes > c.cfg.MaxBytes:
		return errNoRoomInView
	case own+busy+bytes > c.cfg.MaxBytes:
		return fault.Busy(errMemoryBusy)
	}
	return nil
}

// measure ends a reservation for a view: what it takes is known now. A view that
// has become larger than its plan, so that even without all others it does not
// fit, leaves.
func (c *Cache) measure(v *cachedView, counter *int64, bytes int64) {
	held := v.view.Bytes() + viewOverhead
	c.mu.Lock()
	defer c.mu.Unlock()
	*counter -= bytes
	v.use.held = held
	if !c.makeRoom(v, 0) && c.views[v.cacheKey] == v {
		delete(c.views, v.cacheKey)
	}
}

// Bytes is the memory of the views and the reservations for loads and queries.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := int64(0)
	for _, v := range c.views {
		taken += v.use.total()
	}
	return taken
}
