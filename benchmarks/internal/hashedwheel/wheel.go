package hashedwheel

import (
	"errors"
	"math"
	"sync"
	"time"
)

// Errors of [Wheel.Start].
var (
	// ErrStopped is returned once Stop was called.
	ErrStopped = errors.New("hashedwheel: stopped")
	// ErrTooManyPending is returned for one more than the maximum.
	ErrTooManyPending = errors.New("hashedwheel: too many timers are pending")
)

// A Config says how a Wheel is made. The zero value has Netty's defaults.
type Config struct {
	// Tick is the time between two slots' turns; default 100 ms.
	Tick time.Duration
	// Slots is rounded up to a power of two; default 512.
	Slots int
	// MaxPending is the most timers that may be pending; default no limit.
	MaxPending int
}

// An entry is a timer. It is pending while it stands in a slot's list, and on
// the list of free entries otherwise; its generation rises when it leaves a
// slot. All of it is guarded by the Wheel's mutex.
type entry struct {
	next, prev *entry
	f          func()
	tick       int64 // at which it is due
	generation uint64
}

// A Wheel calls functions after a while. Make one with [New]; all its methods
// may be called from any goroutine.
type Wheel struct {
	base     time.Time
	interval time.Duration
	max      int
	mask     int64
	quit     chan struct{}
	ended    chan struct{}

	mu struct {
		sync.Mutex
		slots   []entry // sentinels of circular lists
		free    *entry
		tick    int64 // the last whose turn has come
		pending int
		stopped bool
	}
}

// New makes a Wheel and starts its goroutine, which ends with [Wheel.Stop].
// It panics if a field of c is negative.
func New(c Config) *Wheel {
	if c.Tick < 0 || c.Slots < 0 || c.MaxPending < 0 {
		panic("hashedwheel: negative tick, slots or maximum")
	}
	if c.Tick == 0 {
		c.Tick = 100 * time.Millisecond
	}
	if c.Slots == 0 {
		c.Slots = 512
	}
	if c.MaxPending == 0 {
		c.MaxPending = math.MaxInt
	}
	slots := 1
	for slots < c.Slots {
		slots *= 2
	}
	w := &Wheel{
		base:     time.Now(),
		interval: c.Tick,
		max:      c.MaxPending,
		mask:     int64(slots - 1),
		quit:     make(chan struct{}),
		ended:    make(chan struct{}),
	}
	w.mu.slots = make([]entry, slots)
	for i := range w.mu.slots {
		s := &w.mu.slots[i]
		s.next, s.prev = s, s
	}
	go w.run()
	return w
}

// A Handle is one timer that was started. The zero Handle is of none.
type Handle struct {
	w          *Wheel
	e          *entry
	generation uint64
}

// Start calls f once, at the first tick that is not before d from now.
func (w *Wheel) Start(d time.Duration, f func()) (Handle, error) {
	tick := w.tickAfter(d)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.mu.stopped:
		return Handle{}, ErrStopped
	case w.mu.pending >= w.max:
		return Handle{}, ErrTooManyPending
	}
	e := w.mu.free
	if e == nil {
		e = new(entry)
	} else {
		w.mu.free = e.next
	}
	w.mu.pending++
	e.f = f
	w.linkLocked(e, tick)
	return Handle{w, e, e.generation}, nil
}

// Stop reports whether it kept the callback from running.
func (h Handle) Stop() bool {
	if h.w == nil {
		return false
	}
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if h.e.generation != h.generation {
		return false
	}
	unlink(h.e)
	h.w.releaseLocked(h.e)
	return true
}

// Reset has the callback run after d from now instead. It reports false, and
// does nothing, if the timer is no longer pending.
func (h Handle) Reset(d time.Duration) bool {
	if h.w == nil {
		return false
	}
	tick := h.w.tickAfter(d)
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if h.e.generation != h.generation {
		return false
	}
	unlink(h.e)
	h.w.linkLocked(h.e, tick)
	return true
}

// Pending returns the number of pending timers.
func (w *Wheel) Pending() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.pending
}

// An Unprocessed is a timer that was pending when its Wheel was stopped.
type Unprocessed struct {
	Left time.Duration // until its tick; negative if that has passed
	F    func()
}

// Stop ends the wheel, waits for the callbacks of the tick that is being
// processed, and hands back what was pending, in no particular order. Timers
// that are stopped already are not among it; the second call returns none. It
// must not be called from a callback.
func (w *Wheel) Stop() []Unprocessed {
	now := time.Since(w.base)
	w.mu.Lock()
	if w.mu.stopped {
		w.mu.Unlock()
		<-w.ended
		return nil
	}
	w.mu.stopped = true
	left := make([]Unprocessed, 0, w.mu.pending)
	for i := range w.mu.slots {
		s := &w.mu.slots[i]
		for e := s.next; e != s; e = s.next {
			left = append(left, Unprocessed{w.timeOf(e.tick) - now, e.f})
			unlink(e)
			w.releaseLocked(e)
		}
	}
	w.mu.free = nil
	w.mu.Unlock()
	close(w.quit)
	<-w.ended
	return left
}

// tickAfter returns the first tick that is not before d from now.
func (w *Wheel) tickAfter(d time.Duration) int64 {
	now := time.Since(w.base)
	if d > math.MaxInt64-now-w.interval {
		return math.MaxInt64
	}
	return int64((now + max(d, 0) + w.interval - 1) / w.interval)
}

func (w *Wheel) timeOf(tick int64) time.Duration {
	if tick > math.MaxInt64/int64(w.interval) {
		return math.MaxInt64
	}
	return time.Duration(tick) * w.interval
}

// linkLocked puts e into the slot of tick, or of the next one if its turn has
// come already.
func (w *Wheel) linkLocked(e *entry, tick int64) {
	e.tick = max(tick, w.mu.tick+1)
	s := &w.mu.slots[e.tick&w.mask]
	e.prev, e.next = s.prev, s
	s.prev.next, s.prev = e, e
}

func unlink(e *entry) {
	e.prev.next, e.next.prev = e.next, e.prev
}

// releaseLocked puts away an entry that has left its slot.
func (w *Wheel) releaseLocked(e *entry) {
	e.generation++
	e.f, e.prev = nil, nil
	e.next = w.mu.free
	w.mu.free = e
	w.mu.pending--
}
