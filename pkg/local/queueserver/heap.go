package queueserver

// indexedHeap is a heap.Interface whose elements know their index, so that any of them can be moved or removed.
type indexedHeap[T any] struct {
	items []T
	less  func(a, b T) bool
	index func(T) *int // where an element keeps its index; -1 once it has left
}

// first returns the least element, the zero value when there is none.
func (h *indexedHeap[T]) first() (least T) {
	if len(h.items) > 0 {
		least = h.items[0]
	}
	return least
}

func (h *indexedHeap[T]) Len() int           { return len(h.items) }
func (h *indexedHeap[T]) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }

func (h *indexedHeap[T]) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.index(h.items[i]), *h.index(h.items[j]) = i, j
}

func (h *indexedHeap[T]) Push(x any) {
	item := x.(T) //nolint:forcetypeassert // container/heap hands on what was pushed
	*h.index(item) = len(h.items)
	h.items = append(h.items, item)
}

func (h *indexedHeap[T]) Pop() any {
	last := len(h.items) - 1
	item := h.items[last]
	clear(h.items[last:])
	h.items = h.items[:last]
	*h.index(item) = -1
	return item
}
