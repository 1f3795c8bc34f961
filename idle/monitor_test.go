package idle_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/timertest"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

const tick = idle.DefaultTick

// eviction records one call of a Monitor's callback.
type eviction struct {
	v         string
	since, at time.Duration // since epoch
}

// watched is a Monitor on a virtual clock that records its evictions.
type watched struct {
	*idle.Monitor[string]
	clk     *timertest.Clock
	evicted []eviction
	// The callback calls then, unless then is nil.
	then func(v string)
}

func virtual(t testing.TB, opts ...idle.Option) *watched {
	w := &watched{clk: timertest.NewClock(epoch)}
	w.Monitor = idle.New(func(v string, since time.Time) {
		w.evicted = append(w.evicted, eviction{v, since.Sub(epoch), w.clk.Now().Sub(epoch)})
		if w.then != nil {
			w.then(v)
		}
	}, append([]idle.Option{idle.WithClock(w.clk), idle.WithSlackShare(0)}, opts...)...)
	t.Cleanup(func() {
		balanced(t, w.Stats())
		require.NoError(t, w.Shutdown(context.Background()))
		w.Close()
		balanced(t, w.Stats())
		require.Zero(t, w.Len())
	})
	return w
}

func (w *watched) watch(t testing.TB, v string, d time.Duration) *idle.Entry[string] {
	t.Helper()
	e, err := w.Watch(v, d)
	require.NoError(t, err)
	return e
}

func (w *watched) take() []eviction {
	es := w.evicted
	w.evicted = nil
	return es
}

// balanced requires that no entry was lost or counted twice.
func balanced(t testing.TB, st idle.Stats) {
	t.Helper()
	require.Equal(t, st.Watched, st.Evicted+st.Stopped+st.HandedBack+uint64(st.Watching), "%+v", st)
}

func TestMonitor_EvictsEachAfterItsOwnTimeout(t *testing.T) {
	w := virtual(t)
	w.watch(t, "minute", time.Minute)
	w.watch(t, "second", time.Second)
	w.watch(t, "day", 24*time.Hour)
	w.watch(t, "tick", 1) // rounded up
	require.Equal(t, 4, w.Len())
	w.clk.Advance(time.Hour)
	require.Equal(t, []eviction{
		{"tick", 0, tick},
		{"second", 0, time.Second},
		{"minute", 0, time.Minute},
	}, w.take())
	w.clk.Advance(24 * time.Hour)
	require.Equal(t, []eviction{{"day", 0, 24 * time.Hour}}, w.take())
	st := w.Stats()
	require.EqualValues(t, 4, st.Watched)
	require.EqualValues(t, 4, st.Evicted)
	require.Zero(t, st.Rearmed)
}

func TestMonitor_NeverEarlyAndLateByATickAtMost(t *testing.T) {
	for _, tick := range []time.Duration{1, time.Microsecond, 7 * time.Millisecond, time.Second} {
		w := virtual(t, idle.WithTick(tick))
		const timeout = 3*time.Second + 1
		e := w.watch(t, "x", timeout)
		var last time.Duration
		for i := range 50 {
			w.clk.Advance(time.Duration(i*7919%2900) * time.Millisecond)
			require.True(t, e.Touch())
			last = w.clk.Now().Sub(epoch)
		}
		w.clk.Advance(timeout - 1)
		require.Empty(t, w.evicted, "early")
		w.clk.Advance(1 + tick)
		require.Len(t, w.evicted, 1)
		got := w.evicted[0]
		require.Equal(t, last, got.since)
		require.GreaterOrEqual(t, got.at, last+timeout)
		require.Less(t, got.at, last+timeout+tick)
	}
}

func TestMonitor_ATouchMovesNothing(t *testing.T) {
	w := virtual(t)
	e := w.watch(t, "x", 30*time.Second)
	for range 59 {
		w.clk.Advance(5 * time.Second)
		require.True(t, e.Touch())
	}
	// The entry was touched at most 5 s before each check, so the next check is 25 s or
	// 30 s later.
	st := w.Stats()
	require.LessOrEqual(t, st.Rearmed, uint64(12))
	require.GreaterOrEqual(t, st.Rearmed, uint64(9))
	w.clk.Advance(30*time.Second - 1)
	require.Empty(t, w.evicted)
	w.clk.Advance(1)
	require.Equal(t, []eviction{{"x", 295 * time.Second, 325 * time.Second}}, w.take())
}

func TestEntryTouch_FalseOnceTheEvictionIsDecided(t *testing.T) {
	w := virtual(t)
	var e *idle.Entry[string]
	w.then = func(string) {
		require.False(t, e.Touch(), "inside the callback")
		require.False(t, e.TouchAt(w.Now()))
		require.False(t, e.Stop())
		require.False(t, e.SetTimeout(time.Hour))
		require.Zero(t, w.Len())
	}
	e = w.watch(t, "x", time.Second)
	w.clk.Advance(time.Second - 1)
	require.True(t, e.Touch())
	w.clk.Advance(time.Minute)
	require.Len(t, w.take(), 1)
	require.False(t, e.Touch())
	require.Equal(t, idle.Moment(time.Second-1), e.Last(), "touches after the eviction change nothing")
	require.Equal(t, "x", e.Value())
	w.clk.Advance(time.Hour)
	require.Empty(t, w.evicted, "evicted twice")
}

func TestEntryTouchAt_NeverGoesBackwards(t *testing.T) {
	w := virtual(t)
	e := w.watch(t, "x", 10*time.Second)
	early := w.Now()
	w.clk.Advance(5 * time.Second)
	late := w.Now()
	require.Equal(t, idle.Moment(5*time.Second), late)
	require.Equal(t, epoch.Add(5*time.Second), w.Time(late))
	require.True(t, e.TouchAt(late))
	for _, at := range []idle.Moment{early, late - 1, -1, math.MinInt64} {
		require.True(t, e.TouchAt(at), "it is watched")
		require.Equal(t, late, e.Last())
	}
	w.clk.Advance(10*time.Second - 1)
	require.Empty(t, w.evicted)
	w.clk.Advance(1)
	require.Equal(t, []eviction{{"x", 5 * time.Second, 15 * time.Second}}, w.take())
}

func TestEntryTouchAt_AMomentAhead(t *testing.T) {
	w := virtual(t)
	e := w.watch(t, "x", 10*time.Second)
	require.True(t, e.TouchAt(idle.Moment(time.Hour)))
	require.True(t, e.Touch(), "an older touch has no effect")
	w.clk.Advance(time.Hour + 10*time.Second - 1)
	require.Empty(t, w.evicted)
	w.clk.Advance(1)
	require.Len(t, w.take(), 1)

	for _, at := range []idle.Moment{math.MaxInt64, 1 << 62} {
		never := w.watch(t, "never", time.Second)
		require.True(t, never.TouchAt(at))
		require.Greater(t, never.Last(), idle.Moment(100*365*24*time.Hour), "the largest time that fits into a word")
		require.True(t, never.SetTimeout(math.MaxInt64)) // the deadline overflows
		w.clk.Advance(50 * 365 * 24 * time.Hour)
		require.Empty(t, w.evicted)
		require.True(t, never.Stop())
	}
}

func TestMonitor_BeyondTheEndOfItsTime(t *testing.T) {
	w := virtual(t, idle.WithTick(24*time.Hour))
	for _, d := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1} {
		e := w.watch(t, "never", d)
		require.True(t, e.TouchAt(math.MaxInt64)) // the deadline overflows
	}
	w.clk.Advance(200 * 365 * 24 * time.Hour)
	e := w.watch(t, "late", 365*24*time.Hour)
	require.True(t, e.Touch())
	w.clk.Advance(50 * 365 * 24 * time.Hour)
	require.Empty(t, w.evicted, "after 146 years nothing is evicted")
}

func TestEntryStop_TheCallbackNeverRuns(t *testing.T) {
	w := virtual(t)
	e := w.watch(t, "x", time.Second)
	w.clk.Advance(time.Second - 1)
	require.True(t, e.Stop())
	require.False(t, e.Stop())
	require.False(t, e.Touch())
	require.False(t, e.SetTimeout(1))
	require.Zero(t, w.Len())
	w.clk.Advance(time.Hour)
	require.Empty(t, w.evicted)
	require.EqualValues(t, 1, w.Stats().Stopped)

	// Stop also works after a check has moved the entry to another timer.
	e = w.watch(t, "y", time.Second)
	for range 5 {
		w.clk.Advance(700 * time.Millisecond)
		e.Touch()
	}
	require.NotZero(t, w.Stats().Rearmed)
	require.True(t, e.Stop())
	w.clk.Advance(time.Hour)
	require.Empty(t, w.evicted)
	_, pending := w.clk.Next()
	require.False(t, pending, "no timer is left")
}

func TestEntrySetTimeout(t *testing.T) {
	w := virtual(t)
	e := w.watch(t, "shorter", time.Minute)
	w.clk.Advance(5 * time.Second)
	e.Touch()
	w.clk.Advance(5 * time.Second)
	require.True(t, e.SetTimeout(20*time.Second))
	require.Equal(t, 20*time.Second, e.Timeout())
	w.clk.Advance(15*time.Second - 1)
	require.Empty(t, w.evicted)
	w.clk.Advance(1)
	require.Equal(t, []eviction{{"shorter", 5 * time.Second, 25 * time.Second}}, w.take(), "from the last activity")

	start := 25 * time.Second
	e = w.watch(t, "longer", 10*time.Second)
	w.clk.Advance(9 * time.Second)
	require.True(t, e.SetTimeout(time.Minute))
	w.clk.Advance(time.Minute - 9*time.Second - 1)
	require.Empty(t, w.evicted)
	w.clk.Advance(1)
	require.Equal(t, []eviction{{"longer", start, start + time.Minute}}, w.take())

	e = w.watch(t, "at once", time.Hour)
	w.clk.Advance(time.Minute)
	require.True(t, e.SetTimeout(time.Second))
	w.clk.Advance(0)
	require.Len(t, w.take(), 1)

	e = w.watch(t, "to and fro", 10*time.Second)
	require.True(t, e.SetTimeout(time.Hour))
	require.True(t, e.SetTimeout(5*time.Second))
	w.clk.Advance(5*time.Second - 1)
	require.Empty(t, w.evicted)
	w.clk.Advance(1)
	require.Len(t, w.take(), 1)
}

func TestMonitor_RefusesBadArguments(t *testing.T) {
	w := virtual(t)
	e := w.watch(t, "x", time.Second)
	for want, f := range map[string]func(){
		"idle: Watch: the timeout must be positive, got 0s":      func() { w.Watch("x", 0) },
		"idle: Watch: the timeout must be positive, got -1ns":    func() { w.Watch("x", -1) },
		"idle: SetTimeout: the timeout must be positive, got 0s": func() { e.SetTimeout(0) },
		"idle: New: the func must not be nil":                    func() { idle.New[int](nil) },
		"idle: WithTick: the tick must be positive, got 0s":      func() { idle.WithTick(0) },
		"idle: NewConns: the timeout must be positive, got -1s":  func() { idle.NewConns(-time.Second) },
		"idle: NewListener: the listener must not be nil":        func() { idle.NewListener(nil, time.Second) },
		"idle: WithOnIdle: the func must not be nil":             func() { idle.WithOnIdle[*idle.Conn](nil) },
		"idle: WithPanicHandler: the func must not be nil":       func() { idle.WithPanicHandler(nil) },
	} {
		require.PanicsWithValue(t, want, f)
	}
	require.EqualValues(t, 1, w.Stats().Watched)
}

func TestMonitor_CallbackMayUseIt(t *testing.T) {
	w := virtual(t)
	other := w.watch(t, "other", time.Second)
	round := 0
	w.then = func(v string) {
		switch round++; round {
		case 1:
			other.Stop()
			w.watch(t, v, time.Minute) // watches the same thing again
		case 2:
			require.Equal(t, []string{"left"}, leftover(w.Monitor))
		}
	}
	w.watch(t, "x", time.Second-tick)
	w.watch(t, "left", time.Hour)
	w.clk.Advance(10 * time.Minute)
	require.Equal(t, []eviction{
		{"x", 0, time.Second - tick},
		{"x", time.Second - tick, time.Minute + time.Second - tick},
	}, w.take())
	_, err := w.Watch("y", time.Second)
	require.ErrorIs(t, err, idle.ErrClosed)
}

func TestMonitor_CallbackPanics(t *testing.T) {
	var got []any
	w := virtual(t, idle.WithPanicHandler(func(v any, stack []byte) {
		require.NotEmpty(t, stack)
		got = append(got, v)
	}))
	w.then = func(v string) { panic(v) }
	w.watch(t, "a", time.Second)
	w.watch(t, "b", time.Second)
	w.clk.Advance(time.Second)
	require.ElementsMatch(t, []any{"a", "b"}, got)
}

func TestMonitorClose_HandsBack(t *testing.T) {
	w := virtual(t)
	var es []*idle.Entry[string]
	for _, v := range []string{"a", "b", "c", "d"} {
		es = append(es, w.watch(t, v, time.Second))
	}
	es[1].Stop()
	w.clk.Advance(time.Second / 2)
	es[2].Touch()
	require.Empty(t, slices.Collect(w.TakeLeftover()), "the Monitor is not closed")
	require.NoError(t, w.Close())
	left := slices.Collect(w.TakeLeftover())
	require.ElementsMatch(t, []*idle.Entry[string]{es[0], es[2], es[3]}, left)
	require.Empty(t, leftover(w.Monitor), "again")
	for _, e := range es {
		require.False(t, e.Touch())
		require.False(t, e.Stop())
		require.False(t, e.SetTimeout(1))
	}
	_, err := w.Watch("e", time.Second)
	require.ErrorIs(t, err, idle.ErrClosed)
	w.clk.Advance(time.Hour)
	require.Empty(t, w.evicted)
	st := w.Stats()
	require.EqualValues(t, 3, st.HandedBack)
	require.EqualValues(t, 1, st.Rejected)
	require.EqualValues(t, 4, st.Watched)
}

// If an entry is due but not yet checked when Close is called, TakeLeftover returns it.
func TestMonitorClose_WhileOthersAreDue(t *testing.T) {
	w := virtual(t)
	var left []string
	w.then = func(string) { left = leftover(w.Monitor) }
	for _, v := range []string{"a", "b", "c"} {
		w.watch(t, v, time.Second)
	}
	w.watch(t, "far", time.Hour)
	w.clk.Advance(time.Second)
	require.Len(t, w.evicted, 1)
	require.Contains(t, left, "far")
	require.NoError(t, w.Shutdown(context.Background()))
	left = append(left, leftover(w.Monitor)...)
	require.ElementsMatch(t, []string{"a", "b", "c", "far"}, append(left, w.evicted[0].v))
	require.EqualValues(t, 3, w.Stats().HandedBack)
}

func TestMonitorShutdown_KeepsWhatWasWatched(t *testing.T) {
	w := virtual(t)
	w.watch(t, "a", time.Second)
	require.NoError(t, w.Shutdown(context.Background()))
	require.NoError(t, w.Shutdown(context.Background()))
	require.Zero(t, w.Len())
	require.Equal(t, []string{"a"}, leftover(w.Monitor))
}

func TestMonitorShutdown_WaitsForCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun, done atomic.Bool
		m := idle.New(func(int, time.Time) {
			begun.Store(true)
			time.Sleep(time.Hour)
			done.Store(true)
		})
		m.Watch(1, time.Second)
		time.Sleep(2 * time.Second)
		require.True(t, begun.Load())
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.ErrorIs(t, m.Shutdown(ctx), context.DeadlineExceeded)
		require.False(t, done.Load())
		require.NoError(t, m.Shutdown(context.Background()))
		require.True(t, done.Load())
	})
}

// A callback that blocks for an hour delays no other callback.
func TestMonitor_InABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		at := map[int]time.Duration{}
		m := idle.New(func(v int, since time.Time) {
			mu.Lock()
			at[v] = time.Since(start)
			mu.Unlock()
			time.Sleep(time.Hour)
		}, idle.WithSlackShare(0))
		for i := range 100 {
			e, err := m.Watch(i, time.Duration(i+1)*time.Second)
			require.NoError(t, err)
			if i%2 == 0 {
				time.AfterFunc(time.Second/2, func() { e.Touch() })
			}
		}
		time.Sleep(10 * time.Minute)
		mu.Lock()
		for i := range 100 {
			want := time.Duration(i+1) * time.Second
			if i%2 == 0 {
				want += time.Second / 2
			}
			require.GreaterOrEqual(t, at[i], want)
			// All workers of the pool block, and the pool takes a moment to grow.
			require.LessOrEqual(t, at[i], want+2*time.Millisecond)
		}
		mu.Unlock()
		require.NoError(t, m.Shutdown(context.Background()))
	})
}

const elsewhere = "idle: a Monitor or Conns that was made outside a testing/synctest bubble is used inside one," +
	" or the other way round: make it where it is used"

// Methods that would start a timer on the wrong side of a bubble's border panic.
func TestMonitor_MadeOutsideABubbleAndUsedInside(t *testing.T) {
	m := idle.New(func(string, time.Time) {})
	synctest.Test(t, func(t *testing.T) {
		for name, use := range map[string]func(){
			"Watch":    func() { m.Watch("b", time.Second) },
			"Close":    func() { m.Close() },
			"Shutdown": func() { m.Shutdown(context.Background()) },
		} {
			require.PanicsWithValue(t, elsewhere, use, name)
		}
	})
	_, err := m.Watch("b", time.Hour)
	require.NoError(t, err, "nothing is closed or locked")
	require.NoError(t, m.Shutdown(context.Background()))
	require.Equal(t, uint64(1), m.Stats().HandedBack)
}

// Methods that only stop watching may be used inside a bubble, and affect no other entry.
func TestMonitor_MadeOutsideABubbleAndStoppedInside(t *testing.T) {
	evicted := make(chan string, 1)
	m := idle.New(func(v string, _ time.Time) { evicted <- v })
	e, err := m.Watch("a", time.Hour)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) { require.True(t, e.Stop()) })
	_, err = m.Watch("b", time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, "b", <-evicted)
	require.NoError(t, m.Shutdown(context.Background()))
}

func TestMonitor_ManyTimeouts(t *testing.T) {
	w := virtual(t)
	for i := range 2000 {
		e := w.watch(t, "x", time.Duration(i+1)*time.Second)
		require.Equal(t, time.Duration(i+1)*time.Second, e.Timeout())
	}
	for i := range 2000 {
		w.clk.AdvanceTo(epoch.Add(time.Duration(i+1) * time.Second))
		require.Len(t, w.take(), 1)
	}
}

// With clock.System, callbacks run concurrently: one that blocks delays no other.
func TestWithClock_SystemIsTheDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unblock := make(chan struct{})
		evicted := atomic.NewInt32(0)
		m := idle.New(func(n int, _ time.Time) {
			if n == 0 {
				<-unblock
			}
			evicted.Inc()
		}, idle.WithClock(clock.System()))
		for n := range 10 {
			_, err := m.Watch(n, time.Second)
			require.NoError(t, err)
		}
		time.Sleep(time.Minute)
		require.EqualValues(t, 9, evicted.Load())
		close(unblock)
		require.NoError(t, m.Shutdown(t.Context()))
	})
}

// With slack, evictions share wake-ups. None is early, or later than the slack allows.
func TestWithSlack(t *testing.T) {
	for _, c := range []struct {
		opts  []idle.Option
		slack time.Duration
		most  int // number of moments with an eviction
	}{
		{nil, 300 * time.Millisecond, 11},
		{[]idle.Option{idle.WithSlackShare(0.1)}, 3 * time.Second, 2},
		{[]idle.Option{idle.WithSlackShare(0)}, 0, 100},
	} {
		clk := timertest.NewClock(epoch)
		moments := map[time.Time]bool{}
		m := idle.New(func(begin time.Time, since time.Time) {
			require.Equal(t, begin, since)
			late := clk.Now().Sub(since) - 30*time.Second
			require.GreaterOrEqual(t, late, time.Duration(0))
			require.LessOrEqual(t, late, c.slack+idle.DefaultTick)
			moments[clk.Now()] = true
		}, append(c.opts, idle.WithClock(clk))...)
		for range 100 {
			_, err := m.Watch(clk.Now(), 30*time.Second)
			require.NoError(t, err)
			clk.Advance(10 * time.Millisecond)
		}
		clk.Advance(time.Minute)
		require.Zero(t, m.Len())
		require.LessOrEqual(t, len(moments), c.most)
	}
	require.Panics(t, func() { idle.WithSlackShare(1.1) })
	require.Panics(t, func() { idle.WithSlackShare(-0.1) })
}

func TestMonitor_AThingWatchedTwice(t *testing.T) {
	clk := timertest.NewClock(epoch)
	var evicted []time.Duration
	m := idle.New(func(string, time.Time) { evicted = append(evicted, clk.Now().Sub(epoch)) }, idle.WithClock(clk), idle.WithSlackShare(0))
	first, err := m.Watch("a", time.Second)
	require.NoError(t, err)
	_, err = m.Watch("a", 2*time.Second)
	require.NoError(t, err)
	require.Equal(t, 2, m.Len())
	clk.Advance(500 * time.Millisecond)
	require.True(t, first.Touch())
	clk.Advance(time.Second)
	require.Equal(t, []time.Duration{1500 * time.Millisecond}, evicted, "only the first entry was touched")
	require.False(t, first.Stop())
	clk.Advance(time.Second)
	require.Equal(t, []time.Duration{1500 * time.Millisecond, 2 * time.Second}, evicted)
}
