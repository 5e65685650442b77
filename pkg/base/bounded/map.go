// Package bounded remembers what a process need not read again, in so much memory
// and no more. What it forgets the caller reads anew.
package bounded

import "sync"

// Map remembers a value for each key until there are too many, and then begins
// anew. It is safe for concurrent use.
type Map[K comparable, V any] struct {
	most   int
	mu     sync.Mutex
	values map[K]V
}

// New returns a map of at most so many keys.
func New[K comparable, V any](most int) *Map[K, V] { return &Map[K, V]{most: most, values: map[K]V{}} }

// Get returns the zero value for a key that is not remembered.
func (m *Map[K, V]) Get(k K) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[k]
}

// Set remembers the value.
func (m *Map[K, V]) Set(k K, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.values[k]; !known && len(m.values) >= m.most {
		clear(m.values)
	}
	m.values[k] = v
}
