package timer

import (
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/internal/bubble"
)

// A shard without timers keeps its memory for trimAfter since the last start, or for up
// to twice as long. So timers that come and go one at a time do not make it again each
// time, which takes some microseconds.
const trimAfter = 5 * time.Second

// trimmer gives back the memory of shards that nobody uses any more. It waits by a
// timer of package time's, which holds no goroutine, and only while there is a shard
// to be given back. On a clock that was given to New it does nothing: an alarm would
// be one more thing that happens when the clock is advanced.
type trimmer struct {
	s *Scheduler
	// set: the alarm will ring. It falls before the alarm's function looks at the
	// first shard, so that who finds it set need not set it for what that will see.
	set atomic.Bool

	// mu is held while the alarm's function runs. Shards are locked after it.
	mu     sync.Mutex
	alarm  clock.Alarm // nil until it is needed
	closed bool
}

// soon has the shards looked at after a while. The poller calls it when one of them
// may have no timers any more, and whoever stops a Timer that the wheel goes on to hold.
func (t *trimmer) soon() {
	if t.set.Load() || !t.s.system || t.s.real == bubble.Inside() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setLocked()
}

func (t *trimmer) setLocked() {
	if t.closed {
		return
	}
	if t.alarm == nil {
		t.alarm = t.s.clock.NewAlarm(t.ring)
	}
	t.set.Store(true)
	t.alarm.Reset(trimAfter)
}

// ring is the alarm's function.
func (t *trimmer) ring() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set.Store(false)
	if t.closed {
		return
	}
	if t.passLocked() {
		t.setLocked()
	}
}

// passLocked gives back the memory of shards that have not been used since the last
// pass. It reports whether there are others that may be idle the next time.
func (t *trimmer) passLocked() (again bool) {
	for sh := range t.s.shards.made() {
		sh.mu.Lock()
		sh.settleLocked()
		again = sh.trimLocked() || again
		sh.unlock()
	}
	return again
}

// trimLocked gives back the shard's memory if it has no timers and had no start since the
// last call. It reports true if it had one, and else false.
func (sh *shard) trimLocked() (used bool) {
	if sh.wheel.Levels() == 0 || sh.wheel.Len() > 0 {
		return false
	}
	if sh.trimmed != sh.n.started {
		sh.trimmed = sh.n.started
		return true
	}
	// Buckets of the lowest level stay queued, but for a moment only.
	for _, ticket := range sh.tickets {
		sh.s.queue.Remove(ticket)
	}
	if sh.wheel.Release() {
		sh.tickets = nil
	}
	return false
}

func (t *trimmer) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return // the alarm may be of a bubble that is over
	}
	t.closed = true
	if t.alarm != nil {
		t.alarm.Stop()
	}
}
