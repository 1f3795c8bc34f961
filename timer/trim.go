package timer

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/internal/bubble"
)

// A shard without timers keeps its memory for trimAfter to 2 × trimAfter after its last
// start. So timers that come and go one at a time reuse it.
const trimAfter = 5 * time.Second

// trimmer gives back the memory of unused shards. Its alarm is set only while there may
// be such memory. With a virtual clock it does nothing, because tests do not expect its
// alarm.
type trimmer struct {
	s *Scheduler
	// isAlarmSet is true if the alarm will go off. onAlarm clears isAlarmSet before it
	// locks the first shard. So if isAlarmSet is true, onAlarm will see all changes until
	// now.
	isAlarmSet atomic.Bool

	// mu is held while onAlarm runs. Shards are locked after mu.
	mu     sync.Mutex
	alarm  clock.Alarm // nil until first used
	closed bool
}

// scheduleTrim sets the alarm for a pass over the shards, if it is not set already.
func (t *trimmer) scheduleTrim() {
	if t.isAlarmSet.Load() || !t.s.usesSystemClock || t.s.usesRealTime == bubble.Inside() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setAlarmLocked()
}

func (t *trimmer) setAlarmLocked() {
	if t.closed {
		return
	}
	if t.alarm == nil {
		t.alarm = t.s.clock.NewAlarm(t.onAlarm)
	}
	t.isAlarmSet.Store(true)
	t.alarm.Reset(trimAfter)
}

// onAlarm is the alarm's function.
func (t *trimmer) onAlarm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isAlarmSet.Store(false)
	if t.closed {
		return
	}
	if t.trimShardsLocked() {
		t.setAlarmLocked()
	}
}

// trimShardsLocked gives back the memory of shards that were not used since the last
// pass. It reports whether another pass is needed.
func (t *trimmer) trimShardsLocked() (again bool) {
	for sh := range t.s.shards.existingShards() {
		sh.mu.Lock()
		sh.removeStoppedTimersLocked()
		again = sh.trimLocked() || again
		sh.unlock()
	}
	return again
}

// trimLocked gives back the shard's memory if it has no timers and has started none since
// the last call. wasUsed reports whether it has started any.
func (sh *shard) trimLocked() (wasUsed bool) {
	if sh.wheel.Levels() == 0 || sh.wheel.Len() > 0 {
		return false
	}
	if sh.startedAtLastTrim != sh.counts.started {
		sh.startedAtLastTrim = sh.counts.started
		return true
	}
	if sh.wheel.Release() {
		// Buckets of the lowest level stay in the queue, because they expire soon anyway.
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
