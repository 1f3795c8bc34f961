package memstore

import (
	"container/heap"

	"github.com/tickless/tickless/durable/store/machine"
)

// A groupHeap is a heap of the groups with a state, ordered by Until.
type groupHeap struct {
	states heapOf[*groupState]
	byKey  map[machine.GroupKey]*groupState
}

type groupState struct {
	*machine.Group
	index int // in states
}

func (x *groupState) isBefore(y *groupState) bool { return x.Until < y.Until }
func (x *groupState) indexInHeap() *int           { return &x.index }

// put stores a group's state, which may have changed in place, or deletes it if g is nil.
func (h *groupHeap) put(k machine.GroupKey, g *machine.Group) {
	x := h.byKey[k]
	switch {
	case g == nil && x != nil:
		heap.Remove(&h.states, x.index)
		delete(h.byKey, k)
	case g != nil && x == nil:
		x = &groupState{Group: g}
		h.byKey[k] = x
		heap.Push(&h.states, x)
	case g != nil:
		x.Group = g
		heap.Fix(&h.states, x.index)
	}
}
