package memstore

import (
	"container/heap"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// A groupHeap is a heap of the groups with a state, ordered by Until.
type groupHeap struct {
	states []*groupState
	byKey  map[machine.GroupKey]*groupState
}

type groupState struct {
	*machine.Group
	index int // in states
}

// put stores a group's state, which may have changed in place, or deletes it if g is nil.
func (h *groupHeap) put(k machine.GroupKey, g *machine.Group) {
	x := h.byKey[k]
	switch {
	case g == nil && x != nil:
		heap.Remove(h, x.index)
		delete(h.byKey, k)
	case g != nil && x == nil:
		x = &groupState{Group: g}
		h.byKey[k] = x
		heap.Push(h, x)
	case g != nil:
		x.Group = g
		heap.Fix(h, x.index)
	}
}

// first returns the first n groups whose Until is not after a time.
func (h *groupHeap) first(until store.Time, n int) (groups []*machine.Group) {
	var removed []*groupState
	for len(removed) < n && len(h.states) > 0 && h.states[0].Until <= until {
		x := heap.Pop(h).(*groupState)
		removed, groups = append(removed, x), append(groups, x.Group)
	}
	for _, x := range removed {
		heap.Push(h, x)
	}
	return groups
}

// The methods of heap.Interface.

func (h *groupHeap) Len() int           { return len(h.states) }
func (h *groupHeap) Less(i, j int) bool { return h.states[i].Until < h.states[j].Until }

func (h *groupHeap) Swap(i, j int) {
	h.states[i], h.states[j] = h.states[j], h.states[i]
	h.states[i].index, h.states[j].index = i, j
}

func (h *groupHeap) Push(x any) {
	s := x.(*groupState)
	s.index = len(h.states)
	h.states = append(h.states, s)
}

func (h *groupHeap) Pop() any {
	n := len(h.states) - 1
	s := h.states[n]
	h.states[n] = nil
	h.states = h.states[:n]
	return s
}
