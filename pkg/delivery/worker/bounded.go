package worker

// rememberedEndpoints is how many endpoints a process remembers something of.
const rememberedEndpoints = 4096

// bounded is a map that forgets values which are not in use when it holds
// too many. It is not safe for concurrent use.
type bounded[K comparable, V any] struct {
	values map[K]V
	limit  int
	inUse  func(V) bool
}

func newBounded[K comparable, V any](limit int, inUse func(V) bool) bounded[K, V] {
	return bounded[K, V]{values: map[K]V{}, limit: limit, inUse: inUse}
}

func (b *bounded[K, V]) get(key K) (V, bool) {
	v, found := b.values[key]
	return v, found
}

// put adds a value. A full map forgets about a sixteenth, so that it rarely
// looks for what to forget; values in use are kept even past the limit.
func (b *bounded[K, V]) put(key K, v V) {
	if len(b.values) >= b.limit {
		excess := b.limit/16 + 1
		for k, old := range b.values { // in no order
			if excess == 0 {
				break
			}
			if !b.inUse(old) {
				delete(b.values, k)
				excess--
			}
		}
	}
	b.values[key] = v
}
