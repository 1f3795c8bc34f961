package timer_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

func TestTicker_TicksAtItsPeriod(t *testing.T) {
	for _, d := range []time.Duration{time.Millisecond, 7 * time.Millisecond, time.Second, 90 * time.Minute} {
		s, clk := virtual(t)
		tk := s.NewTicker(d)
		for i := range 1000 {
			clk.Advance(d - 1)
			requireEmpty(t, tk.C, "early")
			clk.Advance(1)
			v, ok := receive(tk.C)
			require.True(t, ok, "tick %d of %v", i, d)
			require.Equal(t, epoch.Add(time.Duration(i+1)*d), v, "drift")
		}
		tk.Stop()
		clk.Advance(10 * d)
		requireEmpty(t, tk.C, "after Stop")
	}
}

// The period is not a multiple of the Scheduler's tick. Each tick of the ticker may be
// late, but the lateness does not accumulate.
func TestTicker_DoesNotDriftByTheTick(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(time.Millisecond))
	tk := s.NewTicker(2500 * time.Microsecond)
	defer tk.Stop()
	for i := range 100 {
		exact := time.Duration(i+1) * 2500 * time.Microsecond
		clk.AdvanceTo(epoch.Add((exact + time.Millisecond - 1).Truncate(time.Millisecond)))
		v, ok := receive(tk.C)
		require.True(t, ok, "tick %d", i)
		require.Equal(t, clk.Now(), v)
		require.Less(t, v.Sub(epoch)-exact, time.Millisecond)
	}
	require.EqualValues(t, 100, s.Stats().Fired)
}

// On a virtual clock, a ticker with a period shorter than the Scheduler's tick ticks once
// in each tick.
func TestTicker_ShorterThanATick(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(time.Millisecond))
	tk := s.NewTicker(1)
	clk.Advance(time.Second)
	tk.Stop()
	require.EqualValues(t, 1000, s.Stats().Fired)
}

func TestTicker_DropsTicksForASlowReader(t *testing.T) {
	s, clk := virtual(t)
	tk := s.NewTicker(time.Second)
	defer tk.Stop()
	clk.Advance(10*time.Second + 300*time.Millisecond)
	v, ok := receive(tk.C)
	require.True(t, ok)
	require.Equal(t, epoch.Add(time.Second), v, "the oldest is kept")
	requireEmpty(t, tk.C, "one is kept")
	clk.Advance(700 * time.Millisecond)
	v, ok = receive(tk.C)
	require.True(t, ok, "the phase was lost")
	require.Equal(t, epoch.Add(11*time.Second), v)
}

// The process stands still for several periods. Then one tick comes instead of several,
// and the phase stays the same (akka 26910).
func TestTicker_KeepsItsPhaseOverAPause(t *testing.T) {
	s, clk := virtual(t)
	tk := s.NewTicker(time.Second)
	defer tk.Stop()
	clk.Suspend(time.Second)
	require.Equal(t, epoch.Add(time.Second), <-tk.C)
	clk.Suspend(time.Hour + 250*time.Millisecond)
	v, ok := receive(tk.C)
	require.True(t, ok)
	require.Equal(t, epoch.Add(time.Hour+1250*time.Millisecond), v, "the time of firing")
	require.EqualValues(t, 2, s.Stats().Fired, "a burst")
	clk.Suspend(749 * time.Millisecond)
	requireEmpty(t, tk.C, "early")
	clk.Suspend(time.Millisecond)
	v, ok = receive(tk.C)
	require.True(t, ok, "the phase was lost")
	require.Equal(t, epoch.Add(time.Hour+2*time.Second), v)
	clk.Suspend(time.Second)
	_, ok = receive(tk.C)
	require.True(t, ok, "a pause of one period misses none")
	require.EqualValues(t, 4, s.Stats().Fired)
}

func TestTicker_StopWithdrawsATick(t *testing.T) {
	s, clk := virtual(t)
	tk := s.NewTicker(time.Second)
	clk.Advance(time.Second)
	tk.Stop()
	requireEmpty(t, tk.C, "after Stop")
	tk.Stop()
	tk.Reset(time.Minute)
	clk.Advance(time.Minute)
	tk.Reset(time.Second) // the last tick was not received
	requireEmpty(t, tk.C, "after Reset")
	clk.Advance(time.Second)
	require.Equal(t, clk.Now(), <-tk.C)
	tk.Reset(2 * time.Second)
	clk.Advance(time.Second)
	requireEmpty(t, tk.C, "the new period counts from the Reset")
	for range 5 {
		clk.Advance(time.Second)
		require.Equal(t, clk.Now(), <-tk.C)
		clk.Advance(time.Second)
		requireEmpty(t, tk.C, "the new period")
	}
	tk.Stop()
	require.Zero(t, s.Len())
	balanced(t, s.Stats())
}

func TestTicker_ZeroValueAndNonPositivePeriods(t *testing.T) {
	new(timer.Ticker).Stop()
	require.PanicsWithValue(t, "timer: Reset called on uninitialized Ticker", func() { new(timer.Ticker).Reset(1) })
	s, _ := virtual(t)
	for _, d := range []time.Duration{0, -1, -time.Hour} {
		require.PanicsWithValue(t, "timer: non-positive interval for NewTicker", func() { s.NewTicker(d) })
		require.PanicsWithValue(t, "timer: non-positive interval for NewTicker", func() { timer.NewTicker(d) })
		require.Nil(t, s.Tick(d))
		require.Nil(t, timer.Tick(d))
		tk := s.NewTicker(time.Second)
		require.PanicsWithValue(t, "timer: non-positive interval for Ticker.Reset", func() { tk.Reset(d) })
		require.Equal(t, 1, s.Len(), "it goes on")
		tk.Stop()
	}
	require.Zero(t, s.Len())
}

func TestScheduler_Tick(t *testing.T) {
	s, clk := virtual(t)
	c := s.Tick(time.Second)
	for i := range 3 {
		clk.Advance(time.Second)
		require.Equal(t, epoch.Add(time.Duration(i+1)*time.Second), <-c)
	}
}

// The poller sends ticks even while callbacks block.
func TestTicker_TicksWhileCallbacksBlock(t *testing.T) {
	for name, e := range executors() {
		if name == "inline" {
			continue // callbacks run on the poller
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := timer.New(timer.WithExecutor(e()))
				release := make(chan struct{})
				for range 20 {
					start(t, s, time.Second, func() { <-release })
				}
				tk := s.NewTicker(time.Second)
				begin := time.Now()
				for i := range 10 {
					require.Equal(t, begin.Add(time.Duration(i+1)*time.Second), <-tk.C)
				}
				tk.Stop()
				close(release)
				require.NoError(t, s.Shutdown(context.Background()))
			})
		})
	}
}

// Several goroutines stop and reset a Ticker. After the last Stop no tick comes, and
// Stats accounts for all ticks.
func TestTicker_StopAndResetAtOnce(t *testing.T) {
	s := timer.New(timer.WithTick(time.Microsecond))
	defer s.Close()
	for round := range 20 {
		tk := s.NewTicker(time.Microsecond)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(round), uint64(g)))
				for range 300 {
					switch rng.IntN(3) {
					case 0:
						tk.Stop()
					case 1:
						tk.Reset(time.Duration(1 + rng.IntN(20_000)))
					default:
						receive(tk.C)
					}
				}
			})
		}
		wg.Wait()
		tk.Stop()
		requireEmpty(t, tk.C, "after the last Stop")
		require.Zero(t, s.Len())
	}
	balanced(t, s.Stats())
}

// On the system's clock, no earlier tick is received after Stop or Reset.
func TestTicker_NoTickFromBeforeStopOrReset_Race(t *testing.T) {
	s := timer.New(timer.WithTick(time.Microsecond))
	defer s.Close()
	rng := newRand(t)
	tk := s.NewTicker(time.Hour)
	for range 5000 {
		tk.Reset(time.Duration(1 + rng.IntN(50_000)))
		for spin := rng.IntN(3000); spin > 0; spin-- {
		}
		if rng.IntN(2) == 0 {
			tk.Stop()
		} else {
			tk.Reset(time.Hour)
		}
		requireEmpty(t, tk.C, "a tick from before")
	}
	tk.Stop()
	balanced(t, s.Stats())
}
