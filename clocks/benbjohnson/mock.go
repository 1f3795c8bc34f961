package clock

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// A Mock is a Clock that moves only when told to. Callbacks run on goroutines of their
// own, where a panic ends the program. Make one with NewMock.
type Mock struct {
	timers
	virtual *timertest.Clock

	mu struct {
		sync.Mutex
		// ahead is by how much the time that Now tells is ahead of the virtual clock's,
		// which cannot be set back.
		ahead time.Duration
		// due are the timers that were started with a delay of zero or less, which wait
		// until the time is moved.
		due []*Timer
	}
}

var _ Clock = (*Mock)(nil)

// NewMock returns a Mock that stands at the Unix epoch.
func NewMock() *Mock {
	virtual := timertest.NewClock(time.Unix(0, 0))
	// A tick of a nanosecond has timers fire at their very moment.
	e := executor.NewGoroutines(executor.WithPanicHandler(func(v any, stack []byte) { panic(fmt.Sprintf("%v\n\n%s", v, stack)) }))
	s := timer.New(timer.WithClock(virtual), timer.WithTick(1), timer.WithExecutor(e))
	return &Mock{timers: timers{s}, virtual: virtual}
}

// Now returns the Mock's time.
func (m *Mock) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.virtual.Now().Add(m.mu.ahead)
}

// Since returns the time that has passed since t.
func (m *Mock) Since(t time.Time) time.Duration { return m.Now().Sub(t) }

// Until returns the time until t.
func (m *Mock) Until(t time.Time) time.Duration { return t.Sub(m.Now()) }

// Add moves the time by d. What is due on the way fires at its moment, in order, and
// other goroutines get a millisecond after each. A negative d only changes what Now
// tells.
func (m *Mock) Add(d time.Duration) { m.Set(m.Now().Add(d)) }

// Set moves the time to t: see Add.
func (m *Mock) Set(t time.Time) {
	if !t.Before(m.Now()) {
		m.release()
	}
	end := m.virtual.Now().Add(t.Sub(m.Now()))
	for {
		next, ok := m.virtual.Next()
		if !ok || next.After(end) {
			break
		}
		fired := m.s.Stats().Fired
		m.virtual.AdvanceTo(next)
		if m.s.Stats().Fired != fired {
			gosched()
		}
	}
	if end.After(m.virtual.Now()) {
		m.virtual.AdvanceTo(end)
	}
	m.mu.Lock()
	m.mu.ahead = t.Sub(m.virtual.Now())
	m.mu.Unlock()
	gosched()
}

// WaitForAllTimers moves the time on until no timer is pending, and returns it. With a
// ticker that is not stopped it never returns.
func (m *Mock) WaitForAllTimers() time.Time {
	for {
		m.mu.Lock()
		due := len(m.mu.due) > 0
		m.mu.Unlock()
		if due {
			m.Add(0)
		}
		next, ok := m.virtual.Next()
		if m.s.Len() == 0 || !ok {
			return m.Now()
		}
		m.Add(next.Sub(m.virtual.Now()))
	}
}

// AfterFunc is Clock.AfterFunc. If d is zero or less, f runs when the time is next moved,
// by whatever duration.
func (m *Mock) AfterFunc(d time.Duration, f func()) *Timer {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d > 0 {
		return &Timer{t: m.s.AfterFunc(d, f), m: m}
	}
	t := &Timer{t: m.s.AfterFunc(never, f), m: m}
	m.resetLocked(t, d)
	return t
}

// Timer is Clock.Timer. If d is zero or less, the Timer fires at once.
func (m *Mock) Timer(d time.Duration) *Timer {
	t := m.timers.Timer(d)
	t.m = m
	return t
}

// WithTimeout is WithDeadline with a deadline d from now.
func (m *Mock) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return m.WithDeadline(parent, m.Now().Add(d))
}

// WithDeadline is Clock.WithDeadline. The deadline is one of the time that Now tells,
// also where this was set back.
func (m *Mock) WithDeadline(parent context.Context, d time.Time) (context.Context, context.CancelFunc) {
	m.mu.Lock()
	ahead := m.mu.ahead
	m.mu.Unlock()
	if ahead == 0 {
		return m.timers.WithDeadline(parent, d)
	}
	if cur, ok := parent.Deadline(); ok && cur.Before(d) {
		return context.WithCancel(parent)
	}
	ctx, cancel := m.timers.WithDeadline(noDeadline{parent}, d.Add(-ahead))
	return shifted{ctx, d}, cancel
}

// noDeadline hides a deadline that the virtual clock's time must not be compared with.
type noDeadline struct{ context.Context }

func (noDeadline) Deadline() (d time.Time, ok bool) { return d, false }

// shifted tells the deadline of the time that Now tells.
type shifted struct {
	context.Context
	deadline time.Time
}

func (c shifted) Deadline() (time.Time, bool) { return c.deadline, true }

// never is a delay that no Mock can get to the end of.
const never time.Duration = math.MaxInt64

// release starts the timers that are due.
func (m *Mock) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.mu.due {
		t.t.Reset(0)
	}
	m.mu.due = nil
}

func (m *Mock) stop(t *Timer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopLocked(t)
}

func (m *Mock) reset(t *Timer, d time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resetLocked(t, d)
}

// stopLocked takes a timer from where it is. It reports whether it was pending.
func (m *Mock) stopLocked(t *Timer) bool {
	if i := slices.Index(m.mu.due, t); i >= 0 {
		m.mu.due = slices.Delete(m.mu.due, i, i+1)
		return true
	}
	return t.t.Stop()
}

func (m *Mock) resetLocked(t *Timer, d time.Duration) bool {
	active := m.stopLocked(t)
	if d <= 0 {
		m.mu.due = append(m.mu.due, t)
	} else {
		t.t.Reset(d)
	}
	return active
}

// gosched lets other goroutines do what the time has brought them.
func gosched() { time.Sleep(time.Millisecond) }
