package timer

import (
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/internal/bubble"
)

// trimAfter is how long a shard without timers keeps its memory after the last start, or
// up to twice as long. So timers that come and go one at a time do not allocate it each
// time, which takes some microseconds.
const trimAfter = 5 * time.Second

// trimmer gives back the memory of unused shards. It waits for a timer of package time,
// which needs no goroutine, and only while a shard may have memory to give back. With a
// clock given to New it does nothing: its alarm would be one more event for tests that
// advance the clock.
type trimmer struct {
	s *Scheduler
	// set is true if the alarm will go off. The alarm's function clears it before it
	// locks the first shard. So a caller that finds it set need not set it again.
	set atomic.Bool

	// mu is held while the alarm's function runs. Shards are locked after mu.
	mu     sync.Mutex
	alarm  clock.Alarm // nil until first used
	closed bool
}

// soon schedules a pass over the shards. It is called by the poller when a shard may have
// lost its last timer, and by Stop for a Timer that the wheel still holds.
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

// passLocked gives back the memory of shards that have not been used since the last pass.
// It reports whether another pass may find more.
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
// last call. used reports whether it had a start.
func (sh *shard) trimLocked() (used bool) {
	if sh.wheel.Levels() == 0 || sh.wheel.Len() > 0 {
		return false
	}
	if sh.trimmed != sh.n.started {
		sh.trimmed = sh.n.started
		return true
	}
	if sh.wheel.Release() {
		// Buckets of the lowest level stay queued, but expire soon.
		for _, ticket := range sh.tickets {
			sh.s.queue.Remove(ticket)
		}
		sh.tickets = nil
	}
	return false
}

func (t *trimmer) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return // the alarm may belong to a bubble that has ended
	}
	t.closed = true
	if t.alarm != nil {
		t.alarm.Stop()
	}
}
