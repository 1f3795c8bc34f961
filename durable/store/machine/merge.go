package machine

import (
	"container/heap"

	"github.com/tickless/tickless/durable/store"
)

// A Source has due tasks of one handler, and of one schedule if the Index reads these apart:
// either suspects or others. The Index reads its tasks in parts.
type Source struct {
	Handler, Schedule string
	Suspect           bool
	// Tasks are those that were read, the oldest first. Merge has offered the first Offered.
	Tasks   []*Task
	Offered int
	// More says that tasks may be due that were not read. They are due at At or later; Exact
	// says that one is due at At.
	More  bool
	At    store.Time
	Exact bool
	// Limit is for the Index: how many tasks it has read at most.
	Limit int
}

// nextAt returns when the source's next task is due, or earlier.
func (s *Source) nextAt() store.Time {
	if s.Offered < len(s.Tasks) {
		return s.Tasks[s.Offered].At
	}
	return s.At
}

// Merge offers the tasks of some sources to the Picker, the oldest first, and returns up to n
// that it takes. If there are no more Tasks of the first source, but there may be, Merge calls
// read, which reads more of it and perhaps of others. need is how many more tasks Merge wants.
func (p *Picker) Merge(sources []*Source, n int, read func(sources []*Source, need int)) (due []*Task) {
	h := sourceHeap(sources)
	heap.Init(&h)
	suspectRefused := false
	for len(due) < n && len(h) > 0 {
		s := h[0]
		hasTask := s.Offered < len(s.Tasks)
		switch {
		case s.Suspect && suspectRefused, !hasTask && !s.More, (hasTask || s.Exact) && !p.Has(s.Handler):
			heap.Pop(&h)
			continue
		case !hasTask:
			read(h, n-len(due))
			heap.Init(&h)
			continue
		case p.Skips(s.Tasks[s.Offered]):
		case p.Take(s.Tasks[s.Offered]):
			due = append(due, s.Tasks[s.Offered])
		default:
			suspectRefused = true
			continue
		}
		s.Offered++
		heap.Fix(&h, 0)
	}
	return due
}

// A sourceHeap is a heap. The first source has the oldest task.
type sourceHeap []*Source

func (h sourceHeap) Len() int           { return len(h) }
func (h sourceHeap) Less(i, j int) bool { return h[i].nextAt() < h[j].nextAt() }
func (h sourceHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *sourceHeap) Push(x any)        { *h = append(*h, x.(*Source)) }

func (h *sourceHeap) Pop() any {
	s := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return s
}
