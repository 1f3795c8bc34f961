package timertest

import (
	"container/heap"
	"time"
)

type alarm struct {
	clock *Clock
	f     func()

	// Guarded by clock.mu.

	when      time.Time // the moment that the alarm is set for
	seq       uint64    // the number of the setting
	heapIndex int       // in clock.alarms, or notInHeap
}

const notInHeap = -1

func (a *alarm) Reset(d time.Duration) {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	a.resetLocked(a.clock.now.Add(max(d, 0)))
}

// ResetAt sets the alarm for t, or for the clock's present time if t has passed.
func (a *alarm) ResetAt(t time.Time) {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	if t.Before(a.clock.now) {
		t = a.clock.now
	}
	a.resetLocked(t.Round(0))
}

func (a *alarm) resetLocked(t time.Time) {
	c := a.clock
	c.lastSeq++
	a.when, a.seq = t, c.lastSeq
	if a.heapIndex == notInHeap {
		heap.Push(&c.alarms, a)
	} else {
		heap.Fix(&c.alarms, a.heapIndex)
	}
}

func (a *alarm) Stop() {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	if a.heapIndex != notInHeap {
		heap.Remove(&a.clock.alarms, a.heapIndex)
	}
}

// alarmHeap orders alarms by moment, and alarms of equal moments by when they were set.
type alarmHeap []*alarm

func (h alarmHeap) Len() int { return len(h) }

func (h alarmHeap) Less(i, j int) bool {
	if c := h[i].when.Compare(h[j].when); c != 0 {
		return c < 0
	}
	return h[i].seq < h[j].seq
}

func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

func (h *alarmHeap) Push(x any) {
	a := x.(*alarm)
	a.heapIndex = len(*h)
	*h = append(*h, a)
}

func (h *alarmHeap) Pop() any {
	alarms := *h
	a := alarms[len(alarms)-1]
	alarms[len(alarms)-1] = nil
	*h = alarms[:len(alarms)-1]
	a.heapIndex = notInHeap
	return a
}
