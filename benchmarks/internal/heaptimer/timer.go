package heaptimer

import (
	"math"
	"sync"
	"time"
)

// batch is how many callbacks are removed from the heap at a time, under the mutex.
const batch = 64

// A Timer calls functions after a delay. Make one with [New]. All its methods may be
// called from any goroutine.
type Timer struct {
	base  time.Time
	wake  chan struct{} // holds at most one
	ended chan struct{}

	mu struct {
		sync.Mutex
		heap   minHeap
		free   *entry
		closed bool
		// sleepsUntil is when the goroutine wakes up by itself, 0 while it is awake.
		// Starting an earlier timer wakes it.
		sleepsUntil int64
	}
}

// New makes a Timer and starts its goroutine, which ends with [Timer.Close].
func New() *Timer {
	t := &Timer{base: time.Now(), wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go t.run()
	return t
}

// A Handle identifies a started timer. The zero Handle identifies none.
type Handle struct {
	t          *Timer
	e          *entry
	generation uint64
}

// Start calls f once after d. On a closed Timer it does nothing and returns the zero
// Handle.
func (t *Timer) Start(d time.Duration, f func()) Handle {
	when := t.when(d)
	t.mu.Lock()
	if t.mu.closed {
		t.mu.Unlock()
		return Handle{}
	}
	e := t.mu.free
	if e == nil {
		e = new(entry)
	} else {
		t.mu.free = e.next
		e.next = nil
	}
	e.f = f
	t.mu.heap.push(item{when, e})
	h := Handle{t, e, e.generation}
	mustWake := t.movesAlarmLocked(when)
	t.mu.Unlock()
	if mustWake {
		t.rouse()
	}
	return h
}

// Stop stops the timer and reports whether it prevented the callback.
func (h Handle) Stop() bool {
	if h.t == nil {
		return false
	}
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if h.e.generation != h.generation {
		return false
	}
	h.t.mu.heap.remove(h.e.index)
	h.t.releaseLocked(h.e)
	return true
}

// Reset makes the callback run after d from now instead. It returns false and does
// nothing if the timer is no longer pending.
func (h Handle) Reset(d time.Duration) bool {
	if h.t == nil {
		return false
	}
	when := h.t.when(d)
	h.t.mu.Lock()
	if h.e.generation != h.generation {
		h.t.mu.Unlock()
		return false
	}
	h.t.mu.heap.fix(h.e.index, item{when, h.e})
	mustWake := h.t.movesAlarmLocked(when)
	h.t.mu.Unlock()
	if mustWake {
		h.t.rouse()
	}
	return true
}

// Len returns the number of pending timers.
func (t *Timer) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.mu.heap)
}

// Close stops every timer, waits for a running callback, and returns how many timers
// were pending. It must not be called from a callback.
func (t *Timer) Close() int {
	t.mu.Lock()
	n := len(t.mu.heap)
	for _, it := range t.mu.heap {
		t.releaseLocked(it.entry)
	}
	t.mu.heap, t.mu.closed = nil, true
	t.mu.Unlock()
	t.rouse()
	<-t.ended
	return n
}

// when returns the deadline after d, or never if it is out of range.
func (t *Timer) when(d time.Duration) int64 {
	now := time.Since(t.base)
	if d > math.MaxInt64-now {
		return math.MaxInt64
	}
	return int64(now + max(d, 0))
}

// releaseLocked puts an entry that has left the heap on the free list.
func (t *Timer) releaseLocked(e *entry) {
	e.generation++
	e.f = nil
	e.next = t.mu.free
	t.mu.free = e
}

// movesAlarmLocked reports whether the goroutine sleeps for longer than until when, and
// must be woken. It marks the goroutine as awake.
func (t *Timer) movesAlarmLocked(when int64) bool {
	if when >= t.mu.sleepsUntil {
		return false
	}
	t.mu.sleepsUntil = 0
	return true
}

func (t *Timer) rouse() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// run runs the due callbacks, and sleeps until the next deadline.
func (t *Timer) run() {
	defer close(t.ended)
	alarm := time.NewTimer(math.MaxInt64)
	defer alarm.Stop()
	var due [batch]func()
	for {
		t.mu.Lock()
		t.mu.sleepsUntil = 0
		n, now := 0, int64(time.Since(t.base))
		for n < batch && len(t.mu.heap) > 0 && t.mu.heap[0].when <= now {
			e := t.mu.heap[0].entry
			due[n] = e.f
			n++
			t.mu.heap.remove(0)
			t.releaseLocked(e)
		}
		closed := t.mu.closed
		if n == 0 {
			t.mu.sleepsUntil = math.MaxInt64
			if len(t.mu.heap) > 0 {
				t.mu.sleepsUntil = t.mu.heap[0].when
			}
			alarm.Reset(time.Duration(t.mu.sleepsUntil - now))
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
			case <-alarm.C:
			case <-t.wake:
			}
		}
	}
}
