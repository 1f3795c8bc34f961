package memstore

import "container/heap"

// A heapOf is a heap whose elements know their indexes, so that each can be removed. It
// implements heap.Interface.
type heapOf[T heapElement[T]] []T

type heapElement[T any] interface {
	isBefore(T) bool
	indexInHeap() *int
}

var (
	_ heapElement[*task]       = (*task)(nil)
	_ heapElement[*queue]      = (*queue)(nil)
	_ heapElement[*groupState] = (*groupState)(nil)
)

func (h heapOf[T]) Len() int           { return len(h) }
func (h heapOf[T]) Less(i, j int) bool { return h[i].isBefore(h[j]) }

func (h heapOf[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].indexInHeap(), *h[j].indexInHeap() = i, j
}

func (h *heapOf[T]) Push(x any) {
	t := x.(T)
	*t.indexInHeap() = len(*h)
	*h = append(*h, t)
}

func (h *heapOf[T]) Pop() any {
	n := len(*h) - 1
	t := (*h)[n]
	clear((*h)[n:])
	*h = (*h)[:n]
	return t
}

// first returns the first n elements of a heap, or fewer if ok returns false for one.
func first[T heapElement[T]](h *heapOf[T], n int, ok func(T) bool) (elements []T) {
	for len(elements) < n && len(*h) > 0 && ok((*h)[0]) {
		elements = append(elements, heap.Pop(h).(T))
	}
	for _, x := range elements {
		heap.Push(h, x)
	}
	return elements
}
