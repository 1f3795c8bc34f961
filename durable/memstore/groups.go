package memstore

import (
	"container/heap"

	"github.com/tickless/tickless/durable/store"
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

// first returns the first n groups whose Until is not after a time.
func (h *groupHeap) first(until store.Time, n int) (groups []*machine.Group) {
	var removed []*groupState
	for len(removed) < n && len(h.states) > 0 && h.states[0].Until <= until {
		x := heap.Pop(&h.states).(*groupState)
		removed, groups = append(removed, x), append(groups, x.Group)
	}
	for _, x := range removed {
		heap.Push(&h.states, x)
	}
	return groups
}
