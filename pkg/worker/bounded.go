package worker

// remembered is how many endpoints a process remembers something of.
const remembered = 4096

// bounded is a map that forgets entries which are not in use when it holds
// too many. It is not safe for concurrent use.
type bounded[K comparable, V any] struct {
	entries map[K]V
	most    int
	inUse   func(V) bool // nil: none ever is
}

func newBounded[K comparable, V any](most int, inUse func(V) bool) bounded[K, V] {
	return bounded[K, V]{entries: map[K]V{}, most: most, inUse: inUse}
}

func (b *bounded[K, V]) get(key K) (V, bool) {
	v, found := b.entries[key]
	return v, found
}

// put adds an entry. A full map makes room by about a sixteenth, so that
// looking for room is rare; entries in use are kept even past the bound.
func (b *bounded[K, V]) put(key K, v V) {
	if len(b.entries) >= b.most {
		room := b.most/16 + 1
		for k, old := range b.entries { // in no order
			if room == 0 {
				break
			}
			if b.inUse == nil || !b.inUse(old) {
				delete(b.entries, k)
				room--
			}
		}
	}
	b.entries[key] = v
}
