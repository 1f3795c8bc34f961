package heaptimer

// An entry holds a pending timer, or is on the list of free entries. The Timer's mutex
// guards it.
type entry struct {
	f          func()
	nextFree   *entry // in the list of free entries
	generation uint64 // counts past timers; a valid Handle has the same number
	index      int    // in the heap
}

// An heapItem is an element of the heap.
type heapItem struct {
	deadline int64 // the deadline, in nanoseconds since the Timer was made
	*entry
}

// A minHeap is a binary heap with the earliest deadline first. The zero value is empty.
type minHeap []heapItem

func (h *minHeap) push(it heapItem) {
	*h = append(*h, it)
	h.siftUp(len(*h)-1, it)
}

// remove removes the item at index i.
func (h *minHeap) remove(i int) {
	lastIndex := len(*h) - 1
	lastItem := (*h)[lastIndex]
	(*h)[lastIndex] = heapItem{}
	*h = (*h)[:lastIndex]
	if i != lastIndex {
		h.fix(i, lastItem)
	}
}

// fix stores the item at index i, then moves it up or down to where it belongs.
func (h *minHeap) fix(i int, it heapItem) {
	if i > 0 && it.deadline < (*h)[(i-1)/2].deadline {
		h.siftUp(i, it)
	} else {
		h.siftDown(i, it)
	}
}

func (h *minHeap) siftUp(i int, it heapItem) {
	s := *h
	for i > 0 {
		parent := (i - 1) / 2
		if s[parent].deadline <= it.deadline {
			break
		}
		s[i] = s[parent]
		s[i].index = i
		i = parent
	}
	s[i] = it
	it.index = i
}

func (h *minHeap) siftDown(i int, it heapItem) {
	s := *h
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1].deadline < s[child].deadline {
			child++
		}
		if it.deadline <= s[child].deadline {
			break
		}
		s[i] = s[child]
		s[i].index = i
		i = child
	}
	s[i] = it
	it.index = i
}
