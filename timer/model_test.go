package timer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// The model is the simplest scheduler there is: a list of pending timers, each
// with its exact deadline. A run applies random operations to a Scheduler under
// a virtual clock and to the model, and compares them after every step.

// modelCase is one arrangement that the model runs under.
type modelCase struct {
	tick   time.Duration
	size   int
	shards int
	start  time.Duration // how far the clock has come when the run begins
}

func (c modelCase) String() string {
	return fmt.Sprintf("tick=%v/size=%d/shards=%d/start=%v", c.tick, c.size, c.shards, c.start)
}

// modelTimer is a timer that the model knows.
type modelTimer struct {
	h        timer.Handle
	t        *timer.Timer // in place of h, if not nil
	deadline int64        // exact, in nanoseconds since the epoch
	pending  bool
	atOnce   bool // was due when it was last started: fired, if not yet run
}

// coverage counts what a run has to have come across.
type coverage struct {
	fired, stopped, resetLater, resetEarlier, resetFired int
	stale, saturated, atOnce, idle, nested               int
	cascaded                                             uint64
}

type modelRun struct {
	t      testing.TB
	c      modelCase
	rng    choices
	clk    *timertest.Clock
	epoch  time.Time
	s      *timer.Scheduler
	timers []*modelTimer
	n      struct{ started, fired, stopped uint64 }
	cover  *coverage
}

// choices is where a run's decisions come from: a random generator or a fuzzer's
// bytes.
type choices interface {
	IntN(n int) int
	Int64N(n int64) int64
}

func newModelRun(t testing.TB, c modelCase, rng choices, cover *coverage) *modelRun {
	r := &modelRun{t: t, c: c, rng: rng, cover: cover}
	r.epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	r.clk = timertest.NewClock(r.epoch)
	r.s = timer.New(timer.WithClock(r.clk), timer.WithTick(c.tick), timer.WithWheelSize(c.size), timer.WithShards(c.shards))
	r.clk.Advance(c.start)
	return r
}

func (r *modelRun) now() int64 { return int64(r.clk.Now().Sub(r.epoch)) }

// due returns the moment at which a deadline's tick comes.
func (r *modelRun) due(deadline int64) int64 {
	tick := int64(r.c.tick)
	k := deadline / tick
	if deadline%tick != 0 {
		k++
	}
	if k > math.MaxInt64/tick {
		return math.MaxInt64
	}
	return k * tick
}

func (r *modelRun) delay() time.Duration {
	switch r.rng.IntN(12) {
	case 0:
		r.cover.atOnce++
		return -time.Duration(r.rng.IntN(3))
	case 1:
		r.cover.saturated++
		return math.MaxInt64 - time.Duration(r.rng.IntN(3))
	case 2, 3:
		// Any magnitude.
		return time.Duration(r.rng.Int64N(1 << (1 + r.rng.IntN(62))))
	case 4:
		// Around a power of the wheel size: the borders of levels.
		span := int64(r.c.tick)
		for range r.rng.IntN(6) {
			if span > math.MaxInt64/int64(r.c.size)/2 {
				break
			}
			span *= int64(r.c.size)
		}
		return time.Duration(max(span+int64(r.rng.IntN(5)-2)*max(int64(r.c.tick)/2, 1), 1))
	default:
		return time.Duration(1 + r.rng.Int64N(int64(r.c.tick)*int64(r.c.size)*4))
	}
}

// callback returns what a timer runs: it checks its moment against the model.
func (r *modelRun) callback(m *modelTimer) func() {
	return func() {
		now := r.now()
		require.True(r.t, m.pending, "a timer that is not pending ran: deadline %d, now %d", m.deadline, now)
		if m.atOnce {
			require.Equal(r.t, m.deadline, now, "a timer due at once")
		} else {
			require.Equal(r.t, r.due(m.deadline), now, "deadline %d", m.deadline)
		}
		m.pending = false
		r.n.fired++
		r.cover.fired++
		if r.rng.IntN(8) == 0 {
			// From inside a callback, all may be done that is done outside.
			r.cover.nested++
			r.change()
		}
	}
}

func after(now int64, d time.Duration) int64 {
	if int64(d) > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + max(int64(d), 0)
}

func (r *modelRun) pick() *modelTimer {
	if len(r.timers) == 0 {
		return nil
	}
	return r.timers[r.rng.IntN(len(r.timers))]
}

// change starts, stops or resets a timer.
func (r *modelRun) change() {
	switch k := r.rng.IntN(10); {
	case k < 5:
		d := r.delay()
		m := &modelTimer{deadline: after(r.now(), d), pending: true, atOnce: d <= 0}
		r.timers = append(r.timers, m)
		r.n.started++
		if r.rng.IntN(3) == 0 {
			m.t = r.s.AfterFunc(d, r.callback(m))
		} else {
			h, err := r.s.Start(d, r.callback(m))
			require.NoError(r.t, err)
			m.h = h
		}
	case k < 7:
		m := r.pick()
		if m == nil {
			return
		}
		stop := m.h.Stop
		if m.t != nil {
			stop = m.t.Stop
		}
		reached := m.pending && r.reached(m)
		got := stop()
		switch {
		case m.atOnce && m.pending:
			require.False(r.t, got, "Stop of a timer that was due at once")
			return
		case reached && !got:
			return // it has been taken out and will run
		}
		require.Equal(r.t, m.pending, got, "Stop")
		if got {
			m.pending = false
			r.n.stopped++
			r.cover.stopped++
		} else {
			r.cover.stale++
		}
	default:
		m := r.pick()
		if m == nil || m.pending && r.reached(m) {
			return
		}
		d := r.delay()
		deadline := after(r.now(), d)
		if m.t != nil {
			require.Equal(r.t, m.pending, m.t.Reset(d), "Timer.Reset")
			if !m.pending {
				r.n.started++
				r.cover.resetFired++
				m.pending = true
			}
		} else {
			require.Equal(r.t, m.pending, m.h.Reset(d), "Handle.Reset")
			if !m.pending {
				return
			}
		}
		if deadline >= m.deadline {
			r.cover.resetLater++
		} else {
			r.cover.resetEarlier++
		}
		m.deadline, m.atOnce = deadline, d <= 0
	}
}

// reached reports whether a timer's tick has come: it may have been taken out,
// and its callback be on its way.
func (r *modelRun) reached(m *modelTimer) bool {
	return m.atOnce || r.due(m.deadline) <= r.now()
}

// step is one operation and the comparison after it.
func (r *modelRun) step() {
	if r.rng.IntN(3) > 0 {
		r.change()
	} else {
		r.advance()
	}
	r.check()
}

func (r *modelRun) advance() {
	d := int64(r.c.tick) * int64(r.rng.IntN(r.c.size*2+1))
	switch r.rng.IntN(8) {
	case 0:
		d = 0
	case 1:
		r.cover.idle++
		d = r.rng.Int64N(1 << (1 + r.rng.IntN(50)))
	case 2:
		d = r.rng.Int64N(int64(r.c.tick) + 1)
	}
	d = min(d, math.MaxInt64-1-r.now()) // the last moment never comes
	r.clk.Advance(time.Duration(d))
	// All that is due has run.
	now := r.now()
	for _, m := range r.timers {
		if m.pending {
			require.Greater(r.t, r.due(m.deadline), now, "a timer due at %d has not run by %d", r.due(m.deadline), now)
		}
	}
	r.timers = slices.DeleteFunc(r.timers, func(m *modelTimer) bool { return !m.pending && r.rng.IntN(4) > 0 })
}

func (r *modelRun) check() {
	pending := 0
	for _, m := range r.timers {
		if m.pending {
			pending++
		}
	}
	st := r.s.Stats()
	require.Equal(r.t, r.n.started, st.Started)
	require.Equal(r.t, r.n.stopped, st.Stopped)
	require.Equal(r.t, st.Started, st.Fired+st.Stopped+uint64(st.Pending), "conservation")
	require.Equal(r.t, st.Pending, r.s.Len())
	// What was due at once may have fired without having run yet.
	require.Equal(r.t, pending, st.Pending+int(st.Fired-r.n.fired))
	require.Equal(r.t, int(st.Fired-r.n.fired), st.Queued)
}

func (r *modelRun) finish() {
	r.cover.cascaded += r.s.Stats().Cascaded
	r.clk.Advance(0)
	var want []int64
	for _, m := range r.timers {
		if m.pending {
			want = append(want, m.deadline)
		}
	}
	slices.Sort(want)
	var got []int64
	for _, p := range r.s.Close() {
		require.NotNil(r.t, p.Func)
		got = append(got, int64(p.Deadline.Sub(r.epoch)))
	}
	require.Equal(r.t, want, got, "handed back")
	require.Nil(r.t, r.s.Close())
	_, set := r.clk.Next()
	require.False(r.t, set, "an alarm is left after Close")
}

// modelOps is how many operations the model tests do in all: TICKLESS_MODEL, or
// a few seconds' worth.
func modelOps(t *testing.T) int {
	if v := os.Getenv("TICKLESS_MODEL"); v != "" {
		n, err := strconv.Atoi(v)
		require.NoError(t, err, "TICKLESS_MODEL")
		return n
	}
	return 100_000
}

func modelSeed(t *testing.T) uint64 {
	seed := rand.Uint64()
	if v := os.Getenv("TICKLESS_SEED"); v != "" {
		var err error
		seed, err = strconv.ParseUint(v, 10, 64)
		require.NoError(t, err, "TICKLESS_SEED")
	}
	t.Logf("TICKLESS_SEED=%d", seed)
	return seed
}

func TestScheduler_Model(t *testing.T) {
	seed, ops := modelSeed(t), modelOps(t)
	var cases []modelCase
	for _, tick := range []time.Duration{1, time.Millisecond, 100 * time.Millisecond} {
		for _, size := range []int{2, 8, 256} {
			for _, shards := range []int{1, 3} {
				for _, start := range []time.Duration{0, 12345678912345, math.MaxInt64 - 1<<40} {
					cases = append(cases, modelCase{tick, size, shards, start})
				}
			}
		}
	}
	const stepsPerRun = 400
	var cover coverage
	runs := max(ops/stepsPerRun, len(cases))
	for i := range runs {
		c := cases[i%len(cases)]
		r := newModelRun(t, c, rand.New(rand.NewPCG(seed, uint64(i))), &cover)
		for range stepsPerRun {
			r.step()
			if t.Failed() {
				t.Fatalf("run %d: %v", i, c)
			}
		}
		r.finish()
	}
	t.Logf("%d runs of %d steps: %+v", runs, stepsPerRun, cover)
	require.NotZero(t, cover.fired)
	require.NotZero(t, cover.stopped)
	require.NotZero(t, cover.resetLater)
	require.NotZero(t, cover.resetEarlier)
	require.NotZero(t, cover.resetFired)
	require.NotZero(t, cover.stale)
	require.NotZero(t, cover.saturated)
	require.NotZero(t, cover.atOnce)
	require.NotZero(t, cover.idle)
	require.NotZero(t, cover.cascaded)
	require.NotZero(t, cover.nested)
}
