package timer

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/tickless/tickless/timingwheel"
)

// A Leftover is a timer that was pending when its Scheduler was closed: see
// [Scheduler.TakeLeftover].
type Leftover struct {
	// Deadline is the earliest time at which the timer would have fired.
	Deadline time.Time
	// Func is the timer's callback. It is nil for a timer that sends on a channel.
	Func func()
	// Handle is what [Scheduler.Start] returned for this timer. It identifies the timer.
	Handle Handle
}

// Close ends the Scheduler and returns nil. Pending timers will not fire:
// [Scheduler.TakeLeftover] returns them. After Close, Start returns [ErrClosed].
//
// Close does not wait for callbacks of timers that have fired: [Scheduler.Shutdown] does.
// So callbacks may call Close. A second Close does nothing. On the [Default] Scheduler,
// Close panics.
//
// Methods that cannot return an error, such as AfterFunc and Reset, still start timers
// after Close. Their callbacks run without the executor, and Shutdown does not wait for
// them.
func (s *Scheduler) Close() error {
	s.mustNotBeDefault("Close")
	s.mustNotBeInForeignBubble()
	s.closeShards()
	return nil
}

// TakeLeftover returns the timers that were pending at Close or Shutdown, sorted by
// deadline. The Scheduler keeps them in memory until TakeLeftover is called. Each timer
// is returned by one call only.
//
// Each loop over the result collects and sorts the timers again. That takes O(n log n)
// time, and 48 bytes for each timer.
func (s *Scheduler) TakeLeftover() iter.Seq[Leftover] {
	s.leftover.Lock()
	shardLeftovers := s.leftover.shards
	s.leftover.shards = nil
	s.leftover.Unlock()
	return func(yield func(Leftover) bool) {
		n := 0
		for _, l := range shardLeftovers {
			n += l.wheel.Len()
		}
		leftovers := make([]Leftover, 0, n)
		for _, l := range shardLeftovers {
			l.eachLeftover(func(e Leftover) { leftovers = append(leftovers, e) })
		}
		slices.SortFunc(leftovers, func(a, b Leftover) int { return a.Deadline.Compare(b.Deadline) })
		for _, e := range leftovers {
			if !yield(e) {
				return
			}
		}
	}
}

// shardLeftover is the wheel of a shard with the timers that were pending at Close.
type shardLeftover struct {
	sh    *shard
	wheel *timingwheel.Wheel[payload]
}

// eachLeftover calls f with every timer, in no particular order.
func (l *shardLeftover) eachLeftover(f func(Leftover)) {
	l.wheel.Each(func(e timingwheel.Entry[payload]) {
		if !isPending(&e.Expired) {
			return
		}
		leftover := Leftover{Deadline: l.sh.s.timeAt(e.Deadline)}
		if tagWithoutLimit(e.Tag) == tagFunc {
			leftover.Func, leftover.Handle = e.Value.callback(), Handle{l.sh, e.ID}
		}
		f(leftover)
	})
}

// Shutdown closes the Scheduler as Close does, and waits until the callbacks of all fired
// timers have run. If ctx ends first, it returns the error of ctx. When Shutdown has
// returned nil, the Scheduler has no goroutine and no file descriptor.
//
// A callback that calls Shutdown waits for itself until ctx ends.
func (s *Scheduler) Shutdown(ctx context.Context) error {
	s.mustNotBeDefault("Shutdown")
	s.mustNotBeInForeignBubble()
	s.closeShards()
	if s.dispatcher.onlyPollerSubmits {
		if err := s.poller.runRemainingCallbacks(ctx); err != nil {
			return err
		}
	}
	if err := s.poller.shutdown(ctx); err != nil {
		return err
	}
	return s.dispatcher.shutdown(ctx)
}

// closeShards refuses new timers and takes out all pending ones. A second call waits for
// the first.
func (s *Scheduler) closeShards() {
	s.closeOnce.Do(func() {
		// A start reads s.closed under its shard's lock. If it reads false, the loop
		// below locks that shard later, and finds the timer.
		s.closed.Store(true)
		for sh := range s.shards.existingShards() {
			sh.handBackPending()
		}
		close(s.handBackDone)
		s.trimmer.close()
		s.queue.Drain()
		s.poller.close()
	})
}

// handBackPending moves the shard's pending timers to the Scheduler's leftover.
func (sh *shard) handBackPending() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.stopFallbackTickersLocked()
	w := sh.wheel
	// The poller may be about to drain this shard. It then finds an empty wheel.
	sh.wheel = newWheel(&sh.s.config)
	sh.counts.handedBack += uint64(w.Len() - sh.handBackTimersLocked(w))
	sh.counts.cascaded += w.Cascaded()
	if w.Len() > 0 {
		sh.s.leftover.Lock()
		sh.s.leftover.shards = append(sh.s.leftover.shards, shardLeftover{sh, w})
		sh.s.leftover.Unlock()
	}
}
