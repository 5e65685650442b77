package views

import (
	"cmp"
	"slices"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/index"
)

// viewOverhead is about what a view takes in addition to its documents, in bytes.
const viewOverhead = 8 << 10

// memoryUse is what a view takes of the cache's memory, in bytes. Cache.mu
// guards it.
type memoryUse struct {
	held     int64 // as measured last
	reserved int64 // for the load under way
}

func (m *memoryUse) total() int64 { return m.held + m.reserved }

// view returns the view of a list: one with text where that is needed, or where there is
// one, so that a list has no two in use. One that was idle for too long leaves first.
func (c *Cache) view(key index.Key, text bool) *cachedView {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.cfg.Clock()
	var v *cachedView
	for _, k := range []viewKey{{key, false}, {key, true}} {
		if known := c.views[k]; known != nil && now.Sub(known.used) > maxIdle {
			delete(c.views, k)
		} else if known != nil && (k.text || !text) {
			v = known
		}
	}
	if v == nil {
		v = newView(index.Index{Key: key, Reader: c.storage}, text, c.cfg.Clock)
		c.views[v.key] = v
	}
	v.used = now
	v.requests++
	return v
}

func (c *Cache) forget(v *cachedView) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.views[v.key] == v {
		delete(c.views, v.key)
	}
}

// reserve makes room for a view to grow by so many bytes: the least recently used views
// leave first. It fails with errTooLarge when no view can have so much, with errOutdated
// when a new one could, and with Unavailable when loads of other views have the memory.
func (c *Cache) reserve(v *cachedView, bytes int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := v.use.total() + bytes
	taken, free := own, int64(0)
	var idle []*cachedView
	for _, other := range c.views {
		if other == v {
			continue
		}
		taken += other.use.total()
		if other.use.reserved == 0 {
			idle, free = append(idle, other), free+other.use.held
		}
	}
	switch most := c.cfg.MaxBytes; {
	case bytes > most, own > most && v.requests == 1: // it has no more than its one request needs
		return errTooLarge
	case own > most:
		return errOutdated
	case taken-free > most:
		return fault.Busy(errMemoryBusy)
	}
	slices.SortFunc(idle, func(a, b *cachedView) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(b.use.held, a.use.held)) })
	for ; taken > c.cfg.MaxBytes; idle = idle[1:] {
		taken -= idle[0].use.held
		delete(c.views, idle[0].key)
	}
	v.use.reserved += bytes
	return nil
}

// measure ends the reservations of a view: what it takes is known now. One that has
// become larger than was reserved, so that there is no room for it, leaves.
func (c *Cache) measure(v *cachedView) {
	held := v.view.Bytes() + viewOverhead
	c.mu.Lock()
	v.use = memoryUse{held: held}
	c.mu.Unlock()
	if c.Bytes() > c.cfg.MaxBytes {
		c.forget(v)
	}
}

// Bytes is the memory of the views and the reservations for loads.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := int64(0)
	for _, v := range c.views {
		taken += v.use.total()
	}
	return taken
}
