package indexing

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/commerce-integration/service/pkg/value"
)

// slots hands out where chunks may be written. A put over an item costs as
// much as the larger of the two, and a deletion costs as much as a put: a
// replaced chunk that another is written over is removed for nothing. A slot
// that was never used has a random number: writers that know nothing of one
// another do not meet.
type slots struct {
	mu       sync.Mutex
	manifest *manifest
	usable   value.Time // slots that are free since before
}

// wasted is by how much a chunk that is written over may be larger.
func wasted(size int) int { return size/4 + 4<<10 }

// take returns the slot for a chunk of a size, and the mark of what lies
// there, 0 when the slot was never used.
func (s *slots) take(size int) chunk {
	s.mu.Lock()
	defer s.mu.Unlock()
	best := -1
	for i, f := range s.manifest.free {
		if f.since < s.usable && f.size <= size+wasted(size) && (best < 0 || f.size > s.manifest.free[best].size) {
			best = i
		}
	}
	if best >= 0 {
		taken := s.manifest.free[best]
		s.manifest.free = slices.Delete(s.manifest.free, best, best+1)
		return taken.chunk
	}
	return chunk{slot: rand.Uint64()} //nolint:gosec // a place, not a secret
}

// release frees the chunks of segments.
func (m *manifest) release(now value.Time, segments ...segment) {
	for i := range segments {
		for _, c := range segments[i].chunks {
			m.free = append(m.free, slot{c, now})
		}
	}
}

// surplus takes the smallest free slots that are too many off the list.
func (m *manifest) surplus() []chunk {
	if len(m.free) <= maxFree {
		return nil
	}
	slices.SortFunc(m.free, func(a, b slot) int { return cmp.Compare(b.size, a.size) })
	var out []chunk
	for _, s := range m.free[maxFree:] {
		out = append(out, s.chunk)
	}
	m.free = m.free[:maxFree]
	return out
}
