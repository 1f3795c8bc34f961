package timer

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// recentKept is how many of each kind of event are kept.
const recentKept = 16

// notablyLate is from which lateness on a timer is kept in Recent, unless
// WithLateHandler says otherwise.
const notablyLate = 10 * time.Millisecond

// Recent is what went wrong lately: the latest of each kind, at most 16, the oldest
// first.
type Recent struct {
	// Late are timers that fired late: by 10 ms or more, or as [WithLateHandler] says.
	Late []LateTimer
	// Slow are callbacks that took 10 ms or longer, those that still run among them.
	// It is empty without [WithCallbackTimes].
	Slow []SlowCallback
	// Panics are those of callbacks. Of an executor given by [WithExecutor] it has them
	// only if there is a panic handler, too.
	Panics []Panic
}

// A LateTimer is a timer that fired late.
type LateTimer struct {
	// Due is when it was to fire, Fired when it did: when its callback was handed to
	// the executor.
	Due, Fired time.Time
	Kind       Kind
	// ByAlarm is how much of the lateness is the alarm's: the machine, or Go's
	// scheduler, woke the poller late. The rest is the poller's, which had other timers
	// to fire or to move first.
	ByAlarm time.Duration

	pc uintptr
}

// Function returns the name of the callback's function, or "" if there is none.
func (l LateTimer) Function() string { return functionName(l.pc) }

// Late returns by how much the timer fired late.
func (l LateTimer) Late() time.Duration { return l.Fired.Sub(l.Due) }

// A Panic is the panic of a callback.
type Panic struct {
	When time.Time
	// Value is what it panicked with, as package fmt prints it, and Stack the stack: of
	// each the first 4,096 bytes.
	Value string
	Stack string
}

// WithLateHandler sets a function that is called with each timer that fires late by at
// least after. It runs on the goroutine that fires timers, without a lock: it must not
// block. A panic of it is not recovered. The default is none. WithLateHandler panics if after is not positive
// or f is nil.
func WithLateHandler(after time.Duration, f func(LateTimer)) Option {
	if after <= 0 {
		panic(fmt.Sprintf("timer: WithLateHandler: the duration must be positive, got %v", after))
	}
	if f == nil {
		panic("timer: WithLateHandler: the function must not be nil")
	}
	return option(func(c *config) { c.lateAfter, c.onLate = after, f })
}

// Recent returns what went wrong lately.
func (s *Scheduler) Recent() Recent {
	r := Recent{Late: s.poller.recent.get(), Panics: s.dispatch.panics.get()}
	if s.dispatch.times != nil {
		r.Slow = s.dispatch.times.slowOnes()
	}
	return r
}

// latest keeps the latest of some events.
type latest[T any] struct {
	mu   sync.Mutex
	all  []T
	next int // where the next goes, once there are enough
}

func (l *latest[T]) add(v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) < recentKept {
		l.all = append(l.all, v)
		return
	}
	l.all[l.next] = v
	l.next = (l.next + 1) % recentKept
}

// get returns them, the oldest first.
func (l *latest[T]) get() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append(slices.Clone(l.all[l.next:]), l.all[:l.next]...)
}
