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
	// Deadline is when it would have fired, at the earliest.
	Deadline time.Time
	// Func is its callback. It is nil for a timer that has none, as those that
	// send on a channel.
	Func func()
	// Handle is what [Scheduler.Start] has returned for it, to compare with.
	Handle Handle
}

// Close ends the Scheduler, and returns nil. What was pending will not fire:
// [Scheduler.TakeLeftover] has it. Start returns [ErrClosed] from then on. Close does not
// wait, so callbacks may call it: callbacks of timers that have fired still run. To wait for
// them call [Scheduler.Shutdown], before or after. Closing again does nothing. Close panics
// on the [Default] Scheduler, and inside a testing/synctest bubble if the Scheduler was made
// outside.
//
// AfterFunc, NewTimer, NewTicker, After, Tick and Reset have no error to return. What they
// start on a closed Scheduler falls back to package time, or to an alarm of the clock given by
// [WithClock], so that nobody waits for it for ever. Its callback runs on the goroutine of
// that timer or alarm, and Shutdown does not wait for it.
func (s *Scheduler) Close() error {
	s.mustBeOwned("Close")
	s.mustBeAtHome()
	s.shut()
	return nil
}

// TakeLeftover takes what was pending when the Scheduler was closed, and returns it by
// deadline. A timer is in the result of one call only, and before Close or Shutdown
// there is none. The result can be ranged over any number of times; each time takes 48
// bytes for each timer and O(n log n) time. Until TakeLeftover is called, the Scheduler
// keeps what was pending, and what its callbacks refer to, reachable; the result may be
// dropped.
func (s *Scheduler) TakeLeftover() iter.Seq[Leftover] {
	s.leftover.Lock()
	taken := s.leftover.shards
	s.leftover.shards = nil
	s.leftover.Unlock()
	return func(yield func(Leftover) bool) {
		n := 0
		for _, l := range taken {
			n += l.wheel.Len() + len(l.fallbacks)
		}
		all := make([]Leftover, 0, n)
		for _, l := range taken {
			l.each(func(e Leftover) { all = append(all, e) })
		}
		slices.SortFunc(all, func(a, b Leftover) int { return a.Deadline.Compare(b.Deadline) })
		for _, e := range all {
			if !yield(e) {
				return
			}
		}
	}
}

// shardLeftover is what was pending on a shard.
type shardLeftover struct {
	sh        *shard
	wheel     *timingwheel.Wheel[payload]
	fallbacks []*fallback
}

// each calls f with every timer, in no order.
func (l *shardLeftover) each(f func(Leftover)) {
	s := l.sh.s
	l.wheel.Each(func(e timingwheel.Entry[payload]) {
		if !isPending(&e.Expired) {
			return
		}
		one := leftover(s.at(e.Deadline), e.Value, e.Tag)
		if one.Func != nil {
			one.Handle = Handle{l.sh, e.ID}
		}
		f(one)
	})
	for _, b := range l.fallbacks {
		f(leftover(b.at, b.p, b.tag))
	}
}

func leftover(deadline time.Time, p payload, tag uint8) Leftover {
	if untag(tag) != tagFunc {
		return Leftover{Deadline: deadline}
	}
	return Leftover{Deadline: deadline, Func: p.fn()}
}

// Shutdown does what Close does, and waits until the callbacks of all timers that have
// fired have run. It returns ctx's error if that ends first. When Shutdown has returned
// nil, no goroutine and no file descriptor of the Scheduler is left. Called from inside
// a callback it waits for that callback too, and so for ctx to end. It panics where Close
// does.
func (s *Scheduler) Shutdown(ctx context.Context) error {
	s.mustBeOwned("Shutdown")
	s.mustBeAtHome()
	s.shut()
	if s.dispatch.onPoller {
		if err := s.poller.finish(ctx); err != nil {
			return err
		}
	}
	if err := s.poller.shutdown(ctx); err != nil {
		return err
	}
	return s.dispatch.shutdown(ctx)
}

// shut lets no new timers in and takes all pending ones out, the first time. The other times
// it waits until that is done.
func (s *Scheduler) shut() {
	s.shutting.Do(func() {
		// All shards see this at the same time. A start that has not seen it holds its
		// shard's lock, which comes next.
		s.closed.Store(true)
		for sh := range s.shards.made() {
			sh.shut()
		}
		close(s.done)
		s.trim.close()
		s.queue.Drain()
		s.poller.close()
	})
}

// shut moves what is pending to the Scheduler's leftover.
func (sh *shard) shut() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	w := sh.wheel
	taken := shardLeftover{sh, w, sh.takeFallbacksLocked()}
	// The poller may be about to drain this shard: it finds nothing.
	sh.wheel = newWheel(&sh.s.config)
	sh.n.handedBack += uint64(w.Len() - sh.handBackTimersLocked(w))
	sh.n.cascaded += w.Cascaded()
	if w.Len()+len(taken.fallbacks) > 0 {
		sh.s.leftover.Lock()
		sh.s.leftover.shards = append(sh.s.leftover.shards, taken)
		sh.s.leftover.Unlock()
	}
}
