package timer

import (
	"context"
	"sync"
	"time"

	"github.com/tickless/tickless/internal/latch"
	"go.uber.org/atomic"
)

// A Group is timers of one Scheduler that are stopped together: those of a connection,
// of a request, of a test. Its Stop is stronger than a Handle's, and it can wait for
// callbacks: after [Group.StopWait] none of the Group is running, and none will begin.
// So a Group of one timer is a timer whose stop waits. Make one with [NewGroup]. All its
// methods may be called from any goroutine, also from inside callbacks.
//
// A timer of a Group costs its Handle's 16 bytes and 48 more, and a closure when it
// fires. A Group forgets Handles of timers that have fired or were stopped as it grows.
type Group struct {
	s *Scheduler
	// running counts the callbacks that have begun.
	running latch.Latch

	mu sync.Mutex

	// All below is guarded by mu.

	round   *round
	handles []Handle
	// sweepAt is the number of Handles at which those that name nothing are forgotten.
	sweepAt int
}

// A round is the timers of a Group from one Stop to the next.
type round struct{ stopped atomic.Bool }

// minSweep is how many Handles a Group keeps without a look at them.
const minSweep = 16

// NewGroup returns an empty Group of timers on s. It panics if s is nil.
func NewGroup(s *Scheduler) *Group {
	if s == nil {
		panic("timer: NewGroup with a nil Scheduler")
	}
	s.mustBeMade()
	return &Group{s: s, round: new(round), sweepAt: minSweep}
}

// Start is [Scheduler.Start] for a timer of the Group. Its Handle may be used as any
// other.
func (g *Group) Start(d time.Duration, f func()) (Handle, error) {
	g.mustBeMade()
	if f == nil {
		panic("timer: Group.Start with a nil func")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	t := &groupTimer{g: g, round: g.round, f: f}
	t.owner = t
	h, err := g.s.start(d, g.s.config.slack.of(d), nodePayload(&t.node), tagNode)
	if err != nil {
		return Handle{}, err
	}
	if len(g.handles) == g.sweepAt {
		g.sweepLocked()
	}
	g.handles = append(g.handles, h)
	return h, nil
}

// A groupTimer is a timer of a Group.
type groupTimer struct {
	node
	g     *Group
	round *round
	f     func()
}

func (t *groupTimer) expireLocked(*shard, moment) func() { return t.run }
func (t *groupTimer) pendingFunc() func()                { return t.run }
func (t *groupTimer) abandon()                           {}
func (t *groupTimer) describe() (Kind, uintptr)          { return KindFunc, codeOf(t.f) }

// run is the timer's callback.
func (t *groupTimer) run() {
	// Counted before the look, so that a Stop which comes after it finds the callback
	// running.
	t.g.running.Add(1)
	defer t.g.running.Add(-1)
	if !t.round.stopped.Load() {
		t.f()
	}
}

// sweepLocked forgets the Handles of timers that are not pending, and doubles the
// number at which it comes next: so a start costs O(1) on the average.
func (g *Group) sweepLocked() {
	kept := g.handles[:0]
	eachOfShard(g.handles, func(sh *shard, h Handle) {
		if sh.wheel.Contains(h.id()) {
			kept = append(kept, h)
		}
	})
	clear(g.handles[len(kept):])
	g.handles = kept
	g.sweepAt = max(minSweep, 2*len(kept))
}

// Len returns the number of the Group's timers that are pending. O(n) for n timers that
// it has not forgotten.
func (g *Group) Len() int {
	g.mustBeMade()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweepLocked()
	return len(g.handles)
}

// Stop stops all timers of the Group, and returns how many were pending. No callback of
// theirs begins afterwards, not even one that the executor has already. Those that are
// running go on. The Group can be used again at once. O(n) for n timers.
func (g *Group) Stop() int {
	g.mustBeMade()
	g.mu.Lock()
	g.round.stopped.Store(true)
	g.round = new(round)
	hs := g.handles
	g.handles, g.sweepAt = nil, minSweep
	g.mu.Unlock()
	return StopBatch(hs)
}

// StopWait does what Stop does, and waits until no callback of the Group is running. It
// returns the error of ctx if that ends first. Called from inside a callback of the
// Group it waits for itself, and so for ctx to end. It panics inside a testing/synctest
// bubble if the Scheduler was made outside. Outside the bubble in which the Scheduler was
// made it ends the process if such a callback is under way.
func (g *Group) StopWait(ctx context.Context) error {
	g.mustBeMade()
	// Before anything is stopped. A callback under way would end the process: nobody
	// outside may wake who waits in a bubble.
	g.s.mustBeAtHome()
	g.Stop()
	if g.s.home.Any() && g.running.Wait(ended) != nil {
		g.s.home.Enter()
	}
	return g.running.Wait(ctx)
}

func (g *Group) mustBeMade() {
	if g.s == nil {
		panic("timer: a Group that was not made by NewGroup")
	}
}
