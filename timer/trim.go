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
	// started is how many timers had been started the last time, which was at since.
	started uint64
	since   int64
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
	var started uint64
	var queued map[*shard]bool
	for sh := range t.s.shards.made() {
		sh.mu.Lock()
		sh.settleLocked()
		started += sh.n.started
		used := sh.trimLocked()
		if _, any := sh.wheel.Next(); any && !used && sh.wheel.Len() == 0 {
			if queued == nil {
				queued = make(map[*shard]bool)
			}
			queued[sh] = true
		}
		sh.unlock()
		again = used || again
	}
	t.s.discard(queued)
	now := t.s.now()
	if float64(started-t.started)*float64(busyTime) < busyStarts*float64(now-t.since) {
		// So few starts do not get into each other's way.
		t.s.shards.spread.Store(false)
	}
	t.started, t.since = started, now
	return again
}

// trimLocked gives back the shard's memory if it has no timers and no queued buckets,
// and had no start since the last call. It reports true if it had one, and else false.
func (sh *shard) trimLocked() (used bool) {
	if sh.wheel.Levels() == 0 || sh.wheel.Len() > 0 {
		return false
	}
	if sh.trimmed != sh.n.started {
		sh.trimmed = sh.n.started
		return true
	}
	if sh.wheel.Release() {
		sh.tickets = nil
	}
	return false
}

// discard takes the buckets of shards that are not used out of the queue, and gives the
// shards' memory back then. They wait behind the timer of another shard: what is at the
// head the poller has discarded. No shard may be locked.
func (s *Scheduler) discard(of map[*shard]bool) {
	if len(of) == 0 {
		return
	}
	for ticket, due := range s.queue.All() {
		if !of[due.sh] {
			continue
		}
		due.sh.mu.Lock()
		if due.sh.wheel.Len() == 0 && due.sh.trimmed == due.sh.n.started {
			// Under the lock: once it is free, the bucket may be offered again. What the
			// poller has taken meanwhile, it will expire.
			if _, ok := s.queue.Remove(ticket); ok {
				due.sh.wheel.Discard(due.b)
			}
			due.sh.trimLocked()
		}
		due.sh.mu.Unlock()
	}
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
