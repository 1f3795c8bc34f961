package timertest_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// A test compares times with == and require.Equal, whether the start has a monotonic reading or not.
func TestClock_KeepsTheMonotonicReading(t *testing.T) {
	for _, start := range []time.Time{time.Now(), time.Now().Round(0), time.Now().UTC(), {}} {
		clk := timertest.NewClock(start)
		require.Equal(t, start, clk.Now())
		var rang time.Time
		a := clk.NewAlarm(func() { rang = clk.Now() }).(clock.MomentAlarm)
		a.ResetAt(start.Add(time.Minute).Round(0))
		clk.Advance(time.Hour)
		require.Equal(t, start.Add(time.Minute), rang)
		require.Equal(t, start.Add(time.Hour), clk.Now())
		clk.AdvanceTo(start.Add(2 * time.Hour).Round(0))
		require.Equal(t, start.Add(2*time.Hour), clk.Now())
		clk.Suspend(time.Hour)
		require.Equal(t, start.Add(3*time.Hour), clk.Now())
		require.Equal(t, start.Add(3*time.Hour).Round(0), clk.Wall())
	}
}

func TestClock_Advance(t *testing.T) {
	clk := timertest.NewClock(epoch)
	var rang []time.Duration
	ring := func() { rang = append(rang, clk.Now().Sub(epoch)) }
	a, b, c := clk.NewAlarm(ring), clk.NewAlarm(ring), clk.NewAlarm(ring)
	clk.NewAlarm(func() { t.Error("an alarm that was not set rang") })
	clk.Advance(time.Hour)
	require.Empty(t, rang, "not set")
	a.Reset(3 * time.Second)
	b.Reset(time.Second)
	c.Reset(time.Hour)
	clk.Advance(time.Second - 1)
	require.Empty(t, rang, "early")
	clk.Advance(1)
	require.Equal(t, []time.Duration{time.Hour + time.Second}, rang)
	clk.Advance(time.Minute)
	require.Equal(t, []time.Duration{time.Hour + time.Second, time.Hour + 3*time.Second}, rang)
	require.Equal(t, epoch.Add(time.Hour+61*time.Second), clk.Now(), "past the last alarm")
	c.Stop()
	c.Stop()
	clk.Advance(24 * time.Hour)
	require.Len(t, rang, 2, "stopped")
	c.Reset(time.Second)
	c.Reset(time.Minute) // replaces the first setting
	clk.Advance(time.Minute - 1)
	require.Len(t, rang, 2)
	clk.Advance(1)
	require.Len(t, rang, 3)
}

// If the clock moves by whole ticks, a timer of whole ticks fires exactly after its
// delay.
func TestClock_WholeTicksAreExact(t *testing.T) {
	clk := timertest.NewClock(epoch)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()
	m := idle.New(func(want time.Time, _ time.Time) {
		require.Equal(t, want, clk.Now(), "idle")
	}, idle.WithClock(clk), idle.WithSlackShare(0))
	defer m.Close()
	const n = 1000
	fired := 0
	rng := rand.New(rand.NewPCG(1, 2))
	for range n {
		d := time.Duration(1+rng.IntN(1e6)) * timer.DefaultTick
		want := clk.Now().Add(d)
		_, err := s.Start(d, func() {
			require.Equal(t, want, clk.Now())
			fired++
		})
		require.NoError(t, err)
		d = time.Duration(1+rng.IntN(1e4)) * idle.DefaultTick
		_, err = m.Watch(clk.Now().Add(d), d)
		require.NoError(t, err)
		clk.Advance(time.Duration(rng.IntN(3)) * idle.DefaultTick)
	}
	clk.Advance(time.Hour)
	require.Equal(t, n, fired)
	require.Zero(t, m.Len())
	require.Equal(t, 100*time.Microsecond, timer.DefaultTick)
	require.Equal(t, 10*time.Millisecond, idle.DefaultTick)
}

func TestClock_AdvanceByNothing(t *testing.T) {
	clk := timertest.NewClock(epoch)
	n := 0
	a := clk.NewAlarm(func() { n++ })
	for _, d := range []time.Duration{0, -1, math.MinInt64} {
		a.Reset(d)
		require.Zero(t, n, "inside Reset")
		clk.Advance(0)
		require.Equal(t, 1, n)
		n = 0
	}
	a.Reset(1)
	clk.Advance(0)
	require.Zero(t, n)
}

// Alarms of equal moments go off in the order in which they were set.
func TestClock_Order(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		clk := timertest.NewClock(epoch)
		type setting struct {
			when time.Duration
			seq  int
		}
		var want, got []setting
		current := map[int]setting{}
		alarms := make([]clock.Alarm, 50)
		for i := range alarms {
			alarms[i] = clk.NewAlarm(func() {
				require.Equal(t, epoch.Add(current[i].when), clk.Now())
				got = append(got, current[i])
			})
		}
		for seq := range 200 {
			i := rng.IntN(len(alarms))
			if rng.IntN(4) == 0 {
				alarms[i].Stop()
				delete(current, i)
				continue
			}
			d := time.Duration(rng.IntN(20))
			alarms[i].Reset(d)
			current[i] = setting{d, seq}
		}
		for _, s := range current {
			want = append(want, s)
		}
		slices.SortFunc(want, func(a, b setting) int {
			if a.when != b.when {
				return int(a.when - b.when)
			}
			return a.seq - b.seq
		})
		next, ok := clk.Next()
		require.True(t, ok)
		require.Equal(t, epoch.Add(want[0].when), next)
		clk.Advance(20)
		require.Equal(t, want, got)
		_, ok = clk.Next()
		require.False(t, ok)
	}
}

// An alarm's function may call anything except Advance.
func TestClock_FromInside(t *testing.T) {
	clk := timertest.NewClock(epoch)
	var rang []time.Duration
	var again, other clock.Alarm
	again = clk.NewAlarm(func() {
		if rang = append(rang, clk.Now().Sub(epoch)); len(rang) < 4 {
			again.Reset(time.Second)
		}
		other.Stop()
		next, ok := clk.Next()
		require.Equal(t, len(rang) < 4, ok)
		if ok {
			require.Equal(t, clk.Now().Add(time.Second), next)
		}
		require.PanicsWithValue(t, "timertest: Advance: another Advance is running", func() { clk.Advance(0) })
		require.PanicsWithValue(t, "timertest: Advance: another Advance is running", func() { clk.AdvanceTo(clk.Now()) })
	})
	other = clk.NewAlarm(func() { t.Error("an alarm went off although it was stopped at its moment") })
	again.Reset(time.Second)
	other.Reset(time.Second)
	clk.Advance(3500 * time.Millisecond)
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, rang)
	clk.Advance(time.Hour)
	require.Len(t, rang, 4)
}

// If an alarm's function sets an alarm for the present moment, that alarm goes off in the
// same Advance.
func TestClock_SetForNowFromInside(t *testing.T) {
	clk := timertest.NewClock(epoch)
	n := 0
	var a clock.Alarm
	a = clk.NewAlarm(func() {
		if n++; n < 100 {
			a.Reset(0)
		}
	})
	a.Reset(time.Second)
	clk.Advance(time.Second)
	require.Equal(t, 100, n)
	require.Equal(t, epoch.Add(time.Second), clk.Now())
}

func TestClock_Misuse(t *testing.T) {
	clk := timertest.NewClock(epoch)
	require.PanicsWithValue(t, "timertest: Advance: the duration must not be negative, got -1ns", func() { clk.Advance(-1) })
	require.PanicsWithValue(t, "timertest: AdvanceTo: the time must not be before the clock's, got 2029-12-31 23:59:59.999999999 +0000 UTC", func() { clk.AdvanceTo(epoch.Add(-1)) })
	clk.AdvanceTo(epoch)
	require.Equal(t, epoch, clk.Now())
	clk.Advance(time.Second)
	require.Equal(t, epoch.Add(time.Second), clk.Now(), "it is usable")
}

// If an alarm's function panics or calls runtime.Goexit, the clock keeps the time it has
// reached, and later alarms still go off.
func TestClock_PanicAndGoexit(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("oops") }, "Goexit": runtime.Goexit} {
		clk := timertest.NewClock(epoch)
		rang := false
		bad, good := clk.NewAlarm(end), clk.NewAlarm(func() { rang = true })
		bad.Reset(time.Second)
		good.Reset(2 * time.Second)
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() { recover() }()
			clk.Advance(time.Hour)
		})
		wg.Wait()
		require.Equal(t, epoch.Add(time.Second), clk.Now(), name)
		require.False(t, rang)
		clk.Advance(time.Second)
		require.True(t, rang, name)
	}
}

func TestClock_SetWall(t *testing.T) {
	clk := timertest.NewClock(epoch)
	require.Equal(t, epoch, clk.Wall())
	rang := false
	clk.NewAlarm(func() { rang = true }).Reset(time.Minute)
	clk.SetWall(epoch.Add(24 * time.Hour))
	require.Equal(t, epoch, clk.Now(), "Now does not follow")
	require.Equal(t, epoch.Add(24*time.Hour), clk.Wall())
	clk.Advance(time.Second)
	require.Equal(t, epoch.Add(24*time.Hour+time.Second), clk.Wall(), "the time of day advances from t")
	require.False(t, rang, "alarms do not follow")
	clk.SetWall(epoch.Add(-time.Hour))
	clk.Advance(59 * time.Second)
	require.True(t, rang)
	require.Equal(t, epoch.Add(59*time.Second-time.Hour), clk.Wall())
}

// A machine slept: alarms that became due during the sleep go off late, in order.
func TestClock_Suspend(t *testing.T) {
	clk := timertest.NewClock(epoch)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()
	var ran []time.Duration
	note := func() { ran = append(ran, clk.Now().Sub(epoch)) }
	s.AfterFunc(time.Second, note)
	s.AfterFunc(time.Minute, func() { note(); s.AfterFunc(time.Second, note) })
	clk.Suspend(time.Hour)
	require.Equal(t, []time.Duration{time.Hour, time.Hour}, ran)
	clk.Advance(time.Second)
	require.Equal(t, []time.Duration{time.Hour, time.Hour, time.Hour + time.Second}, ran)
	require.Panics(t, func() { clk.Suspend(-1) })
}

// Other goroutines set and stop alarms while time advances. No alarm is early. Each alarm
// that is set either goes off or is stopped.
func TestClock_Race(t *testing.T) {
	const each = 2000 // a bound: alarms are set faster than they go off
	clk := timertest.NewClock(epoch)
	var wg sync.WaitGroup
	var left atomic.Int32
	var rings [4][each]atomic.Int32
	for g := range rings {
		left.Add(1)
		wg.Go(func() {
			defer left.Add(-1)
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for i := range each {
				// Use a new alarm for each setting, so that calls of f can be told apart.
				d := time.Duration(rng.IntN(1000))
				begin := clk.Now()
				a := clk.NewAlarm(func() {
					rings[g][i].Add(1)
					if clk.Now().Sub(begin) < d {
						t.Error("early")
					}
				})
				a.Reset(d)
				if i%2 == 0 {
					a.Stop()
				}
				clk.Wall()
				clk.Next()
				runtime.Gosched()
			}
		})
	}
	advances := 0
	for ; left.Load() > 0; advances++ {
		clk.Advance(7)
		runtime.Gosched()
	}
	wg.Wait()
	clk.Advance(time.Hour)
	require.Equal(t, epoch.Add(time.Duration(7*advances)+time.Hour), clk.Now())
	for g := range rings {
		for i := range each {
			n := rings[g][i].Load()
			require.LessOrEqual(t, n, int32(1))
			require.True(t, n == 1 || i%2 == 0, "it was not stopped")
		}
	}
}

// An alarm that is set for a moment does not depend on the clock's present time.
func TestAlarm_ResetAt(t *testing.T) {
	clk := timertest.NewClock(epoch)
	var rang []time.Duration
	a := clk.NewAlarm(func() { rang = append(rang, clk.Now().Sub(epoch)) }).(clock.MomentAlarm)
	due := clk.Now().Add(time.Minute)
	clk.Advance(time.Second)
	a.ResetAt(due)
	next, set := clk.Next()
	require.True(t, set)
	require.Equal(t, due, next)
	clk.Advance(time.Hour)
	a.ResetAt(due) // already passed: goes off immediately, and the clock does not go back
	require.Equal(t, []time.Duration{time.Minute}, rang, "not inside ResetAt")
	clk.Advance(0)
	a.ResetAt(time.Now().AddDate(100, 0, 0)) // has a monotonic reading
	a.Stop()
	clk.Advance(200 * 365 * 24 * time.Hour)
	require.Equal(t, []time.Duration{time.Minute, time.Hour + time.Second}, rang)
}

// Beyond 292 years a Duration overflows, and timers would be lost.
func TestClock_292YearsFromItsStart(t *testing.T) {
	const msg = "timertest: Advance: the clock can show times within 292 years of its start, not "
	clk := timertest.NewClock(epoch)
	last := epoch.Add(math.MaxInt64)
	require.PanicsWithValue(t, msg+last.Add(1).String(), func() { clk.AdvanceTo(last.Add(1)) })
	require.Equal(t, epoch, clk.Now(), "it has not moved, and can be")
	clk.AdvanceTo(last)
	require.Equal(t, last, clk.Now())
	clk.Advance(0)
	require.PanicsWithValue(t, msg+last.Add(1).String(), func() { clk.Advance(1) })
}
