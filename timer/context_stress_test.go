package timer_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/timer"
)

// Err, Done, AfterFunc, its stop, cancel, children, the parent's cancel and the expiry
// race for each of very many contexts, under parents of every kind. Each ends once,
// with an error that can be true, and leaves no timer, no goroutine, and nothing with
// its parent: what those of another kind have registered is counted, and of the
// others what memory they take after all of it.
func TestStress_Contexts(t *testing.T) {
	total := 20_000
	if timer.StressLong() {
		total = 2_000_000
	} else if timer.RaceEnabled {
		total = 8_000
	}
	x := &ctxStress{t: t, s: timer.New(timer.WithShards(2)), other: timer.New()}
	x.std, x.cancelStd = context.WithCancelCause(context.Background())
	x.ours, x.cancelOurs = x.s.WithTimeout(context.Background(), forever)
	x.ours.Done()
	x.registering, x.unknown = newRegistering(), newUnknown()
	long := x.longLived()
	rng := newRand(t)
	goroutines, heap := 0, int64(0)
	for n, round := 0, 0; n < total; round++ {
		n += x.round(long, rng.Uint64())
		if n%100_000 == 0 {
			t.Logf("%d contexts", n)
		}
		require.Eventually(t, func() bool { return x.s.Len() == 1 && x.other.Len() == 0 }, time.Minute, 50*time.Microsecond, "timers are left")
		if heap == 0 && n > total/2 {
			goroutines, heap = runtime.NumGoroutine(), heapInUse()
		}
	}
	// A megabyte is for what the runtime and the wheels keep for reuse. In the long
	// form one context in a hundred that stays would show.
	require.Less(t, heapInUse()-heap, int64(1<<20+total/200*100))
	require.Less(t, runtime.NumGoroutine(), goroutines+10)
	require.Empty(t, x.registering.funcs)
	x.cancelStd(errParent)
	x.cancelOurs()
	require.Eventually(t, func() bool { return x.s.Registrations() == 0 }, time.Minute, time.Millisecond, "of parents that are done")
	t.Logf("%d cancelled, %d by the parent, %d timed out, %d functions ran, %d were stopped",
		x.cancelled.Load(), x.byParent.Load(), x.exceeded.Load(), x.ran.Load(), x.stopped.Load())
	for _, n := range []*atomic.Int64{&x.cancelled, &x.byParent, &x.exceeded, &x.ran, &x.stopped} {
		require.Positive(t, n.Load())
	}
	require.NoError(t, x.s.Shutdown(context.Background()))
	require.NoError(t, x.other.Shutdown(context.Background()))
	balanced(t, x.s.Stats())
}

type ctxStress struct {
	// First, so that they are aligned on 32-bit machines too.
	cancelled, byParent, exceeded, ran, stopped atomic.Int64

	t         *testing.T
	s, other  *timer.Scheduler
	std, ours context.Context
	cancelStd context.CancelCauseFunc

	took        time.Duration // by a round
	cancelOurs  context.CancelFunc
	registering *registering
	unknown     *unknown
}

// stressedParent is what contexts are made under. cancel is nil if it lives for ever.
type stressedParent struct {
	ctx    context.Context
	cancel func()
	cause  error
}

func (x *ctxStress) longLived() []stressedParent {
	return []stressedParent{
		{ctx: context.Background()},
		{ctx: x.std},
		{ctx: context.WithValue(x.std, key1(1), 1)},
		{ctx: x.ours},
		{ctx: x.registering},
		{ctx: x.unknown},
		{ctx: wrapped{x.ours}},
		{ctx: wrapped{x.std}},
	}
}

// newParent makes one that will be cancelled, of a kind that is drawn.
func (x *ctxStress) newParent(rng *rand.Rand) stressedParent {
	std, cancelStd := context.WithCancelCause(context.Background())
	byStd := func(ctx context.Context) stressedParent {
		return stressedParent{ctx, func() { cancelStd(errParent) }, errParent}
	}
	ours, cancelOurs := x.s.WithTimeout(std, forever)
	byOurs := func(ctx context.Context) stressedParent {
		return stressedParent{ctx, func() { cancelOurs(); cancelStd(nil) }, context.Canceled}
	}
	other, cancelOther := x.other.WithTimeout(context.Background(), forever)
	switch rng.IntN(10) {
	case 0:
		return byStd(std)
	case 1:
		return byStd(context.WithValue(std, key1(1), 1))
	case 2:
		return byStd(wrapped{std})
	case 3:
		return byStd(ours)
	case 4:
		return byOurs(ours)
	case 5:
		ours.Done()
		return byOurs(ours)
	case 6:
		return byOurs(wrapped{context.WithValue(ours, key1(1), 1)})
	case 7:
		c := newRegistering()
		return stressedParent{c, c.cancel, context.Canceled}
	case 8:
		c := newUnknown()
		return stressedParent{c, c.cancel, context.Canceled}
	}
	return stressedParent{other, cancelOther, context.Canceled}
}

// stressedCtx is a context that several goroutines do all they can to.
type stressedCtx struct {
	// First, so that they are aligned on 32-bit machines too.
	hooks, runs, stops atomic.Int64

	context.Context
	cancel    context.CancelFunc
	deadline  time.Time // its own
	cancelled atomic.Bool
	err       atomic.Error
}

// round makes contexts under two parents, one of which is cancelled, and returns how
// many.
func (x *ctxStress) round(long []stressedParent, seed uint64) int {
	rng := rand.New(rand.NewPCG(seed, 1))
	parents := []stressedParent{long[rng.IntN(len(long))], x.newParent(rng)}
	begin := time.Now()
	all := make([]*stressedCtx, 200)
	of := make([]stressedParent, len(all))
	for i := range all {
		of[i] = parents[rng.IntN(2)]
		parent := of[i].ctx
		if i > 0 && rng.IntN(4) == 0 {
			j := rng.IntN(i)
			parent, of[i] = all[j], stressedParent{} // which may end in any way
			if rng.IntN(2) == 0 {
				parent = all[j].Context
			}
		}
		d := forever / 2
		if rng.IntN(3) > 0 {
			d = time.Duration(rng.Int64N(int64(x.took) + 1)) // as long as all of this takes
		}
		c := &stressedCtx{deadline: time.Now().Add(d)}
		c.Context, c.cancel = x.s.WithDeadline(parent, c.deadline)
		all[i] = c
	}
	var wg sync.WaitGroup
	for g := range uint64(3) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 2+g))
			for range 2 * len(all) {
				x.use(all[rng.IntN(len(all))], rng)
			}
		})
	}
	wg.Go(func() {
		for range rng.IntN(50) {
			runtime.Gosched()
		}
		parents[1].cancel()
	})
	wg.Wait()
	x.took = time.Since(begin)
	for i, c := range all {
		if rng.IntN(4) == 0 || time.Until(c.deadline) > time.Second {
			x.end(c)
		}
		<-c.Done()
		x.judge(c, of[i])
	}
	if c, ok := parents[1].ctx.(*registering); ok {
		requireUnregistered(x.t, c)
	}
	return len(all)
}

// use does something to a context.
func (x *ctxStress) use(c *stressedCtx, rng *rand.Rand) {
	switch rng.IntN(8) {
	case 0, 1:
		x.look(c)
	case 2:
		select {
		case <-c.Done():
			x.look(c)
		default:
		}
	case 3, 4:
		c.hooks.Inc()
		stop := context.AfterFunc(c.Context, func() {
			x.look(c)
			c.cancel() // inside
			c.runs.Inc()
		})
		if rng.IntN(2) == 0 && stop() {
			c.stops.Inc()
		}
	case 5:
		x.end(c)
	case 6:
		child, cancel := x.s.WithTimeout(c, 100*time.Microsecond)
		if rng.IntN(2) == 0 {
			child.Done()
		}
		cancel()
		if child.Err() == nil {
			x.t.Error("cancel did not end it")
		}
	case 7:
		child, cancel := context.WithCancel(c.Context)
		defer cancel()
		if err := c.Err(); err != nil {
			<-child.Done()
		}
	}
}

func (x *ctxStress) end(c *stressedCtx) {
	c.cancelled.Store(true)
	c.cancel()
	if c.Err() == nil {
		x.t.Error("cancel did not end it")
	}
	requireClosed(x.t, c.Done())
}

// look asks a context, and sees that it says what it said before.
func (x *ctxStress) look(c *stressedCtx) {
	err := c.Err()
	if err == nil {
		return
	}
	if !isClosed(c.Done()) {
		x.t.Errorf("Err is %v, and Done is not closed", err)
	}
	if err == context.DeadlineExceeded && time.Now().Before(c.deadline) {
		if at, _ := c.Deadline(); time.Now().Before(at) {
			x.t.Error("early")
		}
	}
	if !c.err.CompareAndSwap(nil, err) && c.err.Load() != err {
		x.t.Errorf("Err was %v and is %v", c.err.Load(), err)
	}
}

// judge sees that the error of a context that is done can be true.
func (x *ctxStress) judge(c *stressedCtx, parent stressedParent) {
	x.look(c)
	err, cause := c.Err(), context.Cause(c.Context)
	switch {
	case err == context.DeadlineExceeded:
		x.exceeded.Inc()
		if cause != err {
			x.t.Errorf("timed out, because of %v", cause)
		}
	case err != context.Canceled:
		x.t.Errorf("Err is %v", err)
	case parent.ctx == nil: // it may be its parent's error
	case cause == errParent || !c.cancelled.Load():
		x.byParent.Inc()
		if parent.cancel == nil {
			x.t.Errorf("Err is %v, because of %v, of one that nobody has cancelled", err, cause)
		} else if cause != parent.cause && cause != context.Canceled {
			x.t.Errorf("the cause is %v, not %v", cause, parent.cause)
		}
	default:
		x.cancelled.Inc()
	}
	for c.runs.Load()+c.stops.Load() < c.hooks.Load() {
		runtime.Gosched()
	}
	if c.runs.Load()+c.stops.Load() != c.hooks.Load() {
		x.t.Errorf("%d ran and %d were stopped, of %d", c.runs.Load(), c.stops.Load(), c.hooks.Load())
	}
	x.ran.Add(c.runs.Load())
	x.stopped.Add(c.stops.Load())
}
