package timer

import (
	"iter"
	"runtime"
	"time"

	"github.com/tickless/tickless/timingwheel"
)

// A Kind tells what a pending timer does when it fires.
type Kind string

// The kinds of timers.
const (
	KindFunc    Kind = "func"    // of Start or AfterFunc: Function returns its name
	KindChannel Kind = "channel" // of NewTimer, After or Sleep
	KindTicker  Kind = "ticker"  // of NewTicker or Tick
)

// A PendingTimer describes a timer that is pending.
type PendingTimer struct {
	// Due is when the timer falls due: at its deadline, or later if it has slack.
	Due  time.Time
	Kind Kind

	pc uintptr // the address of the callback's code, or 0
}

// Function returns the name of the callback's function, as package runtime gives it,
// or "" for a timer without a callback.
func (p PendingTimer) Function() string { return runtime.FuncForPC(p.pc).Name() }

// slotsPerScan is how many slots of a shard's wheel are read while its lock is held.
const slotsPerScan = 512

// Pending returns the pending timers, in no particular order, without those that have
// fallen back to package time. It may miss a timer that is started, stopped or moved
// meanwhile. It may return a ticker twice. The loop's body may use the Scheduler. O(n).
func (s *Scheduler) Pending() iter.Seq[PendingTimer] {
	return func(yield func(PendingTimer) bool) {
		batch := make([]PendingTimer, 0, slotsPerScan)
		for sh := range s.shards.existingShards() {
			hasMore := true
			for cursor := uint64(0); hasMore; {
				batch = batch[:0]
				cursor, hasMore = sh.scanPending(cursor, func(e timingwheel.Entry[payload]) {
					batch = append(batch, s.describe(e))
				})
				for _, p := range batch {
					if !yield(p) {
						return
					}
				}
			}
		}
	}
}

// isPending reports whether x is a timer that is pending, or was pending at Close. If x
// holds a *Timer, isPending replaces it by the Timer's callback or channel.
func isPending(x *timingwheel.Expired[payload]) bool {
	return x.Tag != tagTimer || x.Value.timer().copyPayloadTo(x)
}

// scanPending calls f with the pending timers in the next slotsPerScan slots of the
// shard's wheel, and holds the shard's lock. If hasMore is true, next is the cursor for
// the next call.
func (sh *shard) scanPending(cursor uint64, f func(timingwheel.Entry[payload])) (next uint64, hasMore bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.wheel.Scan(cursor, slotsPerScan, func(e timingwheel.Entry[payload]) {
		if isPending(&e.Expired) {
			f(e)
		}
	})
}

// describe returns the PendingTimer of an entry. The caller holds the shard's lock.
func (s *Scheduler) describe(e timingwheel.Entry[payload]) PendingTimer {
	p := PendingTimer{Due: s.timeAt(e.Due), Kind: KindFunc}
	switch e.Tag {
	case tagChan:
		p.Kind = KindChannel
	case tagTicker:
		p.Kind = KindTicker
	default:
		p.pc = e.Value.codeAddr()
	}
	return p
}

// codeAddr returns the address of a func value's code. It is the first word of what the
// func value points to.
func (p payload) codeAddr() uintptr {
	if p.ptr == nil {
		return 0
	}
	return *(*uintptr)(p.ptr)
}
