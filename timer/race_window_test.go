package timer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timertest"
)

// Goroutines called stoppers stop and reset timers while the timers leave their bucket.
// There are two kinds of rounds:
//
//   - expiry: the bucket is on the lowest level, and its timers fire;
//   - cascade: the bucket is on a higher level. Some of its timers fire, and the others
//     move down.
//
// The test counts the attempts to stop or reset a timer while the bucket is expiring. It
// also counts the stops after the first timer has left the bucket and before the last
// has.

// A cascade round spreads its timers over windowTicks ticks. The bucket expires in the
// first of these ticks.
const windowTicks = 3

type windowKind int

const (
	expiryWindow windowKind = iota
	cascadeWindow
)

func (k windowKind) String() string { return [...]string{"expiry", "cascade"}[k] }

// outcomes counts attempts that returned true and false.
type outcomes struct{ yes, no uint64 }

func (o *outcomes) count(ok bool) {
	if ok {
		o.yes++
	} else {
		o.no++
	}
}

func (o *outcomes) add(p outcomes) { o.yes, o.no = o.yes+p.yes, o.no+p.no }
func (o outcomes) total() uint64   { return o.yes + o.no }

func (o outcomes) String() string {
	return fmt.Sprintf("%d true, %d false (%.0f %%)", o.yes, o.no, 100*float64(o.no)/max(float64(o.total()), 1))
}

// windowStats counts the attempts to stop and reset timers, in all rounds of one
// windowKind.
type windowStats struct {
	stops, resets outcomes
	// middle counts the stops after the first timer and before the last has left the
	// bucket.
	middle outcomes
}

func (w *windowStats) add(v *windowStats) {
	w.stops.add(v.stops)
	w.resets.add(v.resets)
	w.middle.add(v.middle)
}

// contender is one timer of a round.
type contender struct {
	h Handle
	// due is when the callback may run at the earliest. ranAt is when it ran.
	due, ranAt  int64
	runs, stops atomic.Int32
}

// windowRace has a Scheduler with one shard, and the timers of a round.
type windowRace struct {
	t     *testing.T
	s     *Scheduler
	sh    *shard
	clk   *timertest.Clock // nil: the system's
	tick  int64
	all   []contender
	fs    []func()
	stats [stoppers][2]windowStats // of each stopper, for each kind
	over  atomic.Bool
	wg    sync.WaitGroup

	rounds uint64
}

const stoppers = 2

func newWindowRace(t *testing.T, clk *timertest.Clock, opts ...Option) *windowRace {
	r := &windowRace{t: t, clk: clk, all: make([]contender, windowTimers), fs: make([]func(), windowTimers)}
	if clk != nil {
		opts = append(opts, WithClock(clk), WithExecutor(executor.NewInline()))
	}
	r.s = New(append(opts, WithShards(1))...)
	r.sh = r.s.shards.shardAt(0)
	r.tick = int64(r.s.config.tick)
	for i := range r.fs {
		c := &r.all[i]
		r.fs[i] = func() {
			c.ranAt = r.s.now()
			c.runs.Inc()
		}
	}
	return r
}

// drainingLocked reports whether the poller is in the middle of a bucket. The caller
// holds the shard's lock.
func (sh *shard) drainingLocked() bool {
	next, ok := sh.wheel.Next()
	return ok && next <= sh.wheel.Clock()
}

// round runs one round. moment is when the bucket expires.
func (r *windowRace) round(kind windowKind, seed uint64, moment int64) {
	spread := int64(1)
	if kind == cascadeWindow {
		spread = windowTicks
	}
	r.rounds++
	seed += r.rounds * (1 + stoppers)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range r.all {
		c := &r.all[i]
		c.runs.Store(0)
		c.stops.Store(0)
		// Half of the timers are due when the bucket expires, the others later.
		c.due = moment + max(0, rng.Int64N(2*spread)-spread)*r.tick
		now := r.s.now()
		sh := r.s.lockShard()
		id, err := sh.startLocked(now, time.Duration(c.due-now), 0, funcPayload(r.fs[i]), tagFunc)
		sh.unlock()
		require.NoError(r.t, err)
		c.h = Handle{sh, id}
	}
	var loose atomic.Bool
	r.over.Store(false)
	for g := range stoppers {
		r.wg.Go(func() {
			r.attack(g, kind, seed+1+uint64(g), moment, &loose)
		})
	}
	if r.clk != nil {
		loose.Store(true)
		r.clk.Advance(time.Duration(moment - r.s.now()))
		r.over.Store(true)
	}
	r.wg.Wait()
	// No stopper is left. The remaining timers fire.
	if r.clk != nil {
		r.clk.Advance(time.Duration(64*windowTicks) * time.Duration(r.tick))
	}
	for i := range r.all {
		c := &r.all[i]
		for r.clk == nil && c.runs.Load()+c.stops.Load() == 0 {
			runtime.Gosched()
		}
		if c.runs.Load()+c.stops.Load() != 1 {
			r.t.Fatalf("%v: a timer has run %d times and was stopped %d times", kind, c.runs.Load(), c.stops.Load())
		}
		if c.runs.Load() == 1 && c.ranAt < c.due {
			r.t.Fatalf("%v: %d ns early", kind, c.due-c.ranAt)
		}
	}
}

// attack stops or resets each timer of the round once. It returns early when the bucket
// is empty.
func (r *windowRace) attack(g int, kind windowKind, seed uint64, moment int64, loose *atomic.Bool) {
	rng := rand.New(rand.NewPCG(seed, 0))
	st := &r.stats[g][kind]
	if r.clk != nil {
		for !loose.Load() {
			runtime.Gosched()
		}
	} else {
		// Begin up to 20 microseconds before the bucket expires.
		for from := moment - rng.Int64N(20_000); r.s.now() < from; {
			runtime.Gosched()
		}
	}
	n := len(r.all)
	at, step := rng.IntN(n), 2*rng.IntN(n)+1 // prime to n, a power of two
	for k := range n {
		if r.over.Load() {
			return
		}
		c := &r.all[at]
		at = (at + step) & (n - 1)
		if g == 0 && k%8 == 0 {
			r.reset(c, st, rng)
			continue
		}
		if k%2 == 0 {
			ok := c.h.Stop()
			if ok {
				c.stops.Inc()
			}
			st.stops.count(ok)
		} else {
			// Check under the lock whether the poller is in the middle of the bucket.
			r.sh.mu.Lock()
			middle := r.sh.drainingLocked()
			drained := !middle && r.sh.wheel.Clock() >= moment
			ok := r.sh.stopLocked(c.h.id)
			r.sh.unlock()
			if ok {
				c.stops.Inc()
			}
			if drained && r.clk == nil {
				r.over.Store(true)
				return
			}
			st.stops.count(ok)
			if middle {
				st.middle.count(ok)
			}
		}
	}
}

// reset moves a timer: to now, to a tick near the bucket's expiry, or later. It is called
// at most once for each timer.
func (r *windowRace) reset(c *contender, st *windowStats, rng *rand.Rand) {
	d := rng.Int64N(2*windowTicks*r.tick) - r.tick
	due := r.s.now() + max(d, 0)
	ok := c.h.Move(time.Duration(d))
	if ok {
		c.due = due
	}
	st.resets.count(ok)
}

// sum adds up the counts of all stoppers.
func (r *windowRace) sum() (st [2]windowStats) {
	for g := range r.stats {
		for k := range st {
			st[k].add(&r.stats[g][k])
		}
	}
	return st
}

// finish checks that each timer has fired or was stopped.
func (r *windowRace) finish() {
	require.NoError(r.t, r.s.Shutdown(context.Background()))
	require.Empty(r.t, closeAll(r.s))
	s := r.s.Stats()
	require.Equal(r.t, r.rounds*uint64(len(r.all)), s.Started)
	require.Equal(r.t, s.Started, s.Fired+s.Stopped)
	require.Zero(r.t, s.Pending)
	require.Zero(r.t, s.Refused)
}

func attempts(st [2]windowStats) (n uint64) {
	for _, w := range st {
		n += w.stops.total() + w.resets.total()
	}
	return n
}

// stressAttempts returns how many stops and resets the stress test must attempt.
func stressAttempts() uint64 {
	switch {
	case StressLong() && RaceEnabled:
		return 6e6
	case StressLong():
		return 60e6
	case RaceEnabled:
		return 60_000
	}
	return 600_000
}

// In each kind of round, some Stops report true and some report false. In the long form,
// at least a tenth report each.
func TestStress_RaceWindows(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("on one proc, stoppers run only if the poller is preempted, which is too rare")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var sum [2]windowStats
	report := func(name string, st [2]windowStats) {
		t.Logf("%s: %d attempts", name, attempts(st))
		for k, w := range st {
			t.Logf("  %v window: Stop: %v; of these in the middle of the drain: %v; Reset: %v", windowKind(k), w.stops, w.middle, w.resets)
		}
	}
	for _, clock := range []struct {
		name  string
		share uint64 // percentage of the attempts
		race  func(t *testing.T, seed, want uint64) [2]windowStats
	}{{"virtual clock", 80, raceVirtually}, {"system clock", 20, raceReally}} {
		st := clock.race(t, seed, stressAttempts()*clock.share/100)
		report(clock.name, st)
		for k := range st {
			sum[k].add(&st[k])
		}
	}
	report("in all", sum)
	for k, w := range sum {
		for what, o := range map[string]outcomes{"Stop": w.stops, "Stop in the middle of the drain": w.middle} {
			require.NotZero(t, o.yes, "%v: %s", windowKind(k), what)
			require.NotZero(t, o.no, "%v: %s", windowKind(k), what)
			if StressLong() && runtime.GOMAXPROCS(0) > 1 {
				require.LessOrEqual(t, o.total()/10, min(o.yes, o.no), "%v: %s", windowKind(k), what)
			}
		}
	}
}

// windowTimers is the number of timers in a round: eight batches of the poller.
const windowTimers = 8 * batchSize

// raceVirtually races on a virtual clock. The test advances the clock, and does not wait
// for the bucket to expire.
func raceVirtually(t *testing.T, seed, want uint64) [2]windowStats {
	clk := timertest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	r := newWindowRace(t, clk, WithTick(1), WithWheelSize(4))
	for attempts(r.sum()) < want {
		// Begin where a slot of each of the first five levels begins.
		const border = 1 << 10
		clk.Advance(time.Duration(border - r.s.now()%border))
		r.round(expiryWindow, seed, r.s.now()+2)
		for level := range int64(3) {
			clk.Advance(time.Duration(border - r.s.now()%border))
			r.round(cascadeWindow, seed, r.s.now()+2<<(2*(1+level)))
			clk.Advance(time.Duration(border - r.s.now()%border))
			r.round(expiryWindow, seed, r.s.now()+3)
		}
	}
	r.finish()
	return r.sum()
}

// raceReally races on the system's clock.
func raceReally(t *testing.T, seed, want uint64) (sum [2]windowStats) {
	tick := 100 * time.Microsecond
	if RaceEnabled {
		tick *= 10 // starting a round's timers takes that much longer
	}
	executors := []executor.Executor{nil, executor.NewInline()}
	for _, e := range executors {
		// With 256 slots in a level, the timers of an expiry round are on the lowest
		// level. With four slots, those of a cascade round are on a higher level.
		expiry := newWindowRace(t, nil, WithTick(tick), WithExecutor(e))
		cascade := newWindowRace(t, nil, WithTick(tick), WithWheelSize(4), WithExecutor(e))
		for attempts(expiry.sum())+attempts(cascade.sum()) < want/uint64(len(executors)) {
			expiry.round(expiryWindow, seed, (expiry.s.now()/expiry.tick+10)*expiry.tick)
			bucket := 4 * cascade.tick
			cascade.round(cascadeWindow, seed, (cascade.s.now()/bucket+3)*bucket)
		}
		for _, r := range []*windowRace{expiry, cascade} {
			r.finish()
			st := r.sum()
			for k := range st {
				sum[k].add(&st[k])
			}
		}
	}
	return sum
}
