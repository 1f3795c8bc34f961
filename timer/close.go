package timer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tickless/tickless/timingwheel"
)

// Pending is a timer that was still pending when its Scheduler was closed.
type Pending struct {
	// Deadline is when it would have fired, at the earliest.
	Deadline time.Time
	// Func is its callback. It is nil for a timer that has none, as those that
	// send on a channel.
	Func func()
}

// Close ends the Scheduler and returns the timers that were pending, by
// deadline; none of them will fire. From now on timers are not started; Stop and
// Reset of those handed back do nothing and report false. Close waits for
// nothing, so that callbacks may call it: callbacks of timers that have fired
// still run. To wait for them, call [Scheduler.Shutdown], before or after.
// Closing again returns nil. O(n log n) for n pending timers.
func (s *Scheduler) Close() []Pending {
	s.shut()
	s.leftover.Lock()
	wheels := s.leftover.wheels
	s.leftover.wheels = nil
	s.leftover.Unlock()
	var ps []Pending
	for _, w := range wheels {
		ps = slices.Grow(ps, w.Len())
		w.Each(func(e timingwheel.Expired[payload]) {
			if e.Tag == tagContext {
				return // it goes on
			}
			p := Pending{Deadline: s.at(e.Deadline)}
			switch e.Tag {
			case tagFunc:
				p.Func = e.Value.fn()
			case tagNode:
				p.Func = e.Value.node().owner.pendingFunc()
			}
			ps = append(ps, p)
		})
	}
	slices.SortFunc(ps, func(a, b Pending) int {
		return cmp.Compare(a.Deadline.Sub(s.epoch), b.Deadline.Sub(s.epoch))
	})
	return ps
}

// Shutdown ends the Scheduler as Close does, and waits until the callbacks of
// all timers that have fired have run. It returns ctx's error if that ends
// first. What was pending is kept for a call of Close to return. When Shutdown
// has returned nil, no goroutine and no file descriptor of the Scheduler's is
// left. Called from inside a callback it waits for that callback too, and so for
// ctx to end.
func (s *Scheduler) Shutdown(ctx context.Context) error {
	s.shut()
	if s.hand.way == onPoller {
		// What is ready need not wait for the alarm, which under a virtual clock
		// is for the caller to let ring.
		if err := s.poller.finish(ctx); err != nil {
			return err
		}
	}
	if err := s.poller.shutdown(ctx); err != nil {
		return err
	}
	if err := s.telling.wait(ctx); err != nil {
		return err
	}
	return s.hand.shutdown(ctx)
}

// shut takes all pending timers out and lets no new ones in.
func (s *Scheduler) shut() {
	for _, sh := range s.shards {
		sh.mu.Lock()
		if !sh.closed {
			sh.closed = true
			w := sh.wheel
			// The poller may be about to drain this shard: it finds nothing.
			sh.wheel = newWheel(&s.config)
			sh.n.handedBack += uint64(w.Len())
			sh.n.cascaded += w.Cascaded()
			s.leftover.Lock()
			s.leftover.wheels = append(s.leftover.wheels, w)
			s.leftover.Unlock()
			sh.mu.Unlock()
			w.Each(func(e timingwheel.Expired[payload]) {
				switch e.Tag {
				case tagNode:
					e.Value.node().owner.abandon()
				case tagContext:
					sh.movedBack()
					e.Value.context().fallBack()
				}
			})
			continue
		}
		sh.mu.Unlock()
	}
	s.queue.Drain()
	s.poller.close()
}
