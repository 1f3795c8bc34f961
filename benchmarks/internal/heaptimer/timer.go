package heaptimer

import (
	"math"
	"sync"
	"time"
)

// timersPerBatch limits how many due timers are removed each time the mutex is locked.
const timersPerBatch = 64

// A Timer calls functions after a delay. Make one with [New]. It is safe for concurrent
// use.
type Timer struct {
	createdAt time.Time     // deadlines are relative to it
	wake      chan struct{} // has a buffer for one signal
	ended     chan struct{} // closed when the goroutine ends

	mu struct {
		sync.Mutex
		heap      minHeap
		firstFree *entry // the first free entry
		closed    bool
		// sleepsUntil is when the sleeping goroutine wakes up. It is 0 while the goroutine
		// is awake or about to be woken.
		sleepsUntil int64
	}
}

// New makes a Timer and starts its goroutine, which ends with [Timer.Close].
func New() *Timer {
	t := &Timer{createdAt: time.Now(), wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go t.runCallbacks()
	return t
}

// A Handle identifies a started timer. The zero Handle identifies none.
type Handle struct {
	timer      *Timer
	entry      *entry
	generation uint64
}

// Start calls f once after d. On a closed Timer, Start only returns the zero Handle.
func (t *Timer) Start(d time.Duration, f func()) Handle {
	deadline := t.deadlineAfter(d)
	t.mu.Lock()
	if t.mu.closed {
		t.mu.Unlock()
		return Handle{}
	}
	e := t.mu.firstFree
	if e == nil {
		e = new(entry)
	} else {
		t.mu.firstFree = e.nextFree
		e.nextFree = nil
	}
	e.f = f
	t.mu.heap.push(heapItem{deadline, e})
	h := Handle{t, e, e.generation}
	mustWake := t.mustWakeLocked(deadline)
	t.mu.Unlock()
	if mustWake {
		t.wakeUp()
	}
	return h
}

// Stop stops the timer and reports whether it prevented the callback.
func (h Handle) Stop() bool {
	if h.timer == nil {
		return false
	}
	h.timer.mu.Lock()
	defer h.timer.mu.Unlock()
	if h.entry.generation != h.generation {
		return false
	}
	h.timer.mu.heap.remove(h.entry.index)
	h.timer.freeEntryLocked(h.entry)
	return true
}

// Reset changes the deadline to d from now. If the timer is no longer pending, Reset only
// returns false.
func (h Handle) Reset(d time.Duration) bool {
	if h.timer == nil {
		return false
	}
	deadline := h.timer.deadlineAfter(d)
	h.timer.mu.Lock()
	if h.entry.generation != h.generation {
		h.timer.mu.Unlock()
		return false
	}
	h.timer.mu.heap.fix(h.entry.index, heapItem{deadline, h.entry})
	mustWake := h.timer.mustWakeLocked(deadline)
	h.timer.mu.Unlock()
	if mustWake {
		h.timer.wakeUp()
	}
	return true
}

// Len returns the number of pending timers.
func (t *Timer) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.mu.heap)
}

// Close stops every timer, waits until no callback runs, and returns how many timers it
// stopped. A callback must not call Close.
func (t *Timer) Close() int {
	t.mu.Lock()
	n := len(t.mu.heap)
	for _, it := range t.mu.heap {
		t.freeEntryLocked(it.entry)
	}
	t.mu.heap, t.mu.closed = nil, true
	t.mu.Unlock()
	t.wakeUp()
	<-t.ended
	return n
}

// deadlineAfter returns the deadline of a timer that starts now with the delay d, or
// math.MaxInt64 if the deadline would overflow.
func (t *Timer) deadlineAfter(d time.Duration) int64 {
	now := time.Since(t.createdAt)
	if d > math.MaxInt64-now {
		return math.MaxInt64
	}
	return int64(now + max(d, 0))
}

// freeEntryLocked puts an entry that has left the heap on the list of free entries.
func (t *Timer) freeEntryLocked(e *entry) {
	e.generation++
	e.f = nil
	e.nextFree = t.mu.firstFree
	t.mu.firstFree = e
}

// mustWakeLocked reports whether the goroutine sleeps longer than until the deadline.
// If so, the caller must wake it.
func (t *Timer) mustWakeLocked(deadline int64) bool {
	if deadline >= t.mu.sleepsUntil {
		return false
	}
	t.mu.sleepsUntil = 0 // no other caller needs to wake it
	return true
}

func (t *Timer) wakeUp() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// runCallbacks is the goroutine: it runs due callbacks and sleeps until the next deadline.
func (t *Timer) runCallbacks() {
	defer close(t.ended)
	sleepTimer := time.NewTimer(math.MaxInt64)
	defer sleepTimer.Stop()
	var due [timersPerBatch]func()
	for {
		t.mu.Lock()
		t.mu.sleepsUntil = 0
		n, now := 0, int64(time.Since(t.createdAt))
		for n < timersPerBatch && len(t.mu.heap) > 0 && t.mu.heap[0].deadline <= now {
			e := t.mu.heap[0].entry
			due[n] = e.f
			n++
			t.mu.heap.remove(0)
			t.freeEntryLocked(e)
		}
		closed := t.mu.closed
		if n == 0 {
			t.mu.sleepsUntil = math.MaxInt64
			if len(t.mu.heap) > 0 {
				t.mu.sleepsUntil = t.mu.heap[0].deadline
			}
			sleepTimer.Reset(time.Duration(t.mu.sleepsUntil - now))
		}
		t.mu.Unlock()
		if closed {
			return
		}
		for i, f := range due[:n] {
			f()
			due[i] = nil
		}
		if n == 0 {
			select {
			case <-sleepTimer.C:
			case <-t.wake:
			}
		}
	}
}
