package queueserver

import "container/heap"

// sorted is a heap whose elements know their index, so that any of them can be moved or removed.
type sorted[T any] struct {
	items []T
	less  func(a, b T) bool
	index func(T) *int // where an element keeps its index; -1 once it has left
}

func (h *sorted[T]) push(item T)   { heap.Push(h, item) }
func (h *sorted[T]) remove(item T) { heap.Remove(h, *h.index(item)) }

// first returns the least element, the zero value when there is none.
func (h *sorted[T]) first() (least T) {
	if len(h.items) > 0 {
		least = h.items[0]
	}
	return least
}

// Len and the methods below are container/heap's.
func (h *sorted[T]) Len() int           { return len(h.items) }
func (h *sorted[T]) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }

func (h *sorted[T]) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.index(h.items[i]), *h.index(h.items[j]) = i, j
}

func (h *sorted[T]) Push(x any) {
	item := x.(T) //nolint:forcetypeassert // container/heap hands on pushed values
	*h.index(item) = len(h.items)
	h.items = append(h.items, item)
}

func (h *sorted[T]) Pop() any {
	last := len(h.items) - 1
	item := h.items[last]
	clear(h.items[last:])
	h.items = h.items[:last]
	*h.index(item) = -1
	return item
}
