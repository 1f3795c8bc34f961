package soak

import (
	"fmt"
	"sync"
	"time"

	"go.uber.org/atomic"
)

// A ledger records the fate of each timer of one sort.
type ledger struct {
	kind string

	started, fired, stopped atomic.Int64

	// While ending is true, each step must stop a repeating timer.
	ending atomic.Bool

	mu sync.Mutex
	// open counts the pending timers by the second in which they are due.
	open  map[int64]int
	wrong []string // the first few complaints
}

func newLedger(kind string) *ledger { return &ledger{kind: kind, open: map[int64]int{}} }

var begin = time.Now()

// now returns how long the process has run, by the clock that timers follow.
func now() time.Duration { return time.Since(begin) }

// A note is a timer's entry in the ledger.
type note struct {
	l *ledger

	mu      sync.Mutex
	due     time.Duration
	settled string // "fired" or "stopped"; empty while it is pending
}

// enter adds a timer that is due after d. Call it before the timer is started.
func (l *ledger) enter(d time.Duration) *note {
	n := &note{l: l, due: now() + d}
	l.started.Inc()
	l.count(n.due, 1)
	return n
}

func (l *ledger) count(due time.Duration, by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	second := int64(due / time.Second)
	if l.open[second] += by; l.open[second] == 0 {
		delete(l.open, second)
	}
}

func (l *ledger) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wrong) < 10 {
		l.wrong = append(l.wrong, l.kind+": "+fmt.Sprintf(format, args...))
	}
}

// fire records that the timer has fired. The timer's callback calls it.
func (n *note) fire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if early := n.due - now(); early > 0 {
		n.l.complain("%v early", early)
	}
	n.settleLocked("fired", &n.l.fired)
}

// stop calls stopTimer, which stops the timer and reports whether the timer was pending.
func (n *note) stop(stopTimer func() bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	ok := stopTimer()
	if ok {
		n.settleLocked("stopped", &n.l.stopped)
	}
	return ok
}

// move calls reset, which moves the timer to d from now and reports whether the timer was
// pending.
func (n *note) move(d time.Duration, reset func() bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := now()
	if reset() {
		n.l.count(n.due, -1)
		n.due = at + d
		n.l.count(n.due, 1)
	}
}

func (n *note) settleLocked(how string, counter *atomic.Int64) {
	if n.settled != "" {
		n.l.complain("a timer is recorded as %s, but was already recorded as %s", how, n.settled)
		return
	}
	n.settled = how
	counter.Inc()
	n.l.count(n.due, -1)
}

// pending returns the number of pending timers, and how many of them were due before the
// given moment.
func (l *ledger) pending(before time.Duration) (all, overdue int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for second, n := range l.open {
		all += n
		if second < int64(before/time.Second) {
			overdue += n
		}
	}
	return all, overdue
}

func (l *ledger) String() string {
	all, _ := l.pending(0)
	return fmt.Sprintf("%s %d = %d fired + %d stopped + %d pending", l.kind, l.started.Load(), l.fired.Load(), l.stopped.Load(), all)
}
