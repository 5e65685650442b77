package views

import (
	"cmp"
	"slices"
)

// viewOverhead is about what a view takes besides its documents, in bytes.
const viewOverhead = 8 << 10

// memoryUse is what a view takes of the cache's memory, in bytes. Cache.mu
// guards it.
type memoryUse struct {
	held    int64 // as measured last
	growing int64 // reserved for the load under way
	asking  int64 // reserved for queries under way
}

func (m *memoryUse) total() int64 { return m.held + m.growing + m.asking }

func (m *memoryUse) busy() bool { return m.growing+m.asking > 0 }

// reserve makes room for bytes and counts them as taken, in what counts them.
// The least recently used views leave first, but for the one given. It reports
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
	taken, free := c.lent, int64(0)
	if keep != nil && c.views[keep.asked] != keep {
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
		delete(c.views, v.asked)
	}
	return true
}

// fits reports whether a view could grow by so many bytes if others left.
func (c *Cache) fits(v *cachedView, bytes int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.lent + v.use.total()
	for _, other := range c.views {
		if other != v && other.use.busy() {
			taken += other.use.total()
		}
	}
	return taken+bytes <= c.cfg.MaxBytes
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
	if !c.makeRoom(v, 0) && c.views[v.asked] == v {
		delete(c.views, v.asked)
	}
}

// giveBack ends a reservation of memory that was lent.
func (c *Cache) giveBack(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lent -= bytes
}

// Bytes is what the views take, and what is reserved for loads and queries.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.lent
	for _, v := range c.views {
		taken += v.use.total()
	}
	return taken
}
