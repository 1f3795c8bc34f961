package timer_test

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/timer"
)

// What went wrong in timers written in Go: RussellLuo/timingwheel, antlabs/timer,
// rfyiamcool/go-timewheel, and Go's own. What went wrong in worker pools is in
// package executor's tests.

// A timer that came back into the bucket that was being flushed waited for the
// lock that the flush held.
func TestRussellLuo53_BackIntoTheBucketBeingFlushed(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(1), timer.WithWheelSize(4))
	n := 0
	soon(t, func() {
		for _, turn := range []time.Duration{4, 16, 64} { // the same slot of each level
			left := 100
			var again func()
			again = func() {
				n++
				if left--; left > 0 {
					s.Start(turn, again)
				}
			}
			for range 3 {
				s.Start(turn, again)
			}
			clk.Advance(200 * turn)
		}
	})
	require.Equal(t, 3*102, n)
	require.Zero(t, s.Len())
}

// A bucket's expiration was reset outside its lock, and a timer that was added
// then was never looked at.
func TestRussellLuo35_AddWhileTheBucketIsFlushed(t *testing.T) {
	s := timer.New(timer.WithTick(20*time.Microsecond), timer.WithWheelSize(2), timer.WithShards(1))
	var ran atomic.Int64
	const n, goroutines = 20_000, 4
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(35, uint64(g)))
			for range n {
				if _, err := s.Start(time.Duration(rng.IntN(200))*time.Microsecond, func() { ran.Inc() }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for end := time.Now().Add(10 * time.Second); s.Len() > 0; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(end), "%d are lost", s.Len())
	}
	require.NoError(t, s.Shutdown(context.Background()))
	require.EqualValues(t, n*goroutines, ran.Load())
}

// Stop during a flush reported false and the timer had not fired, but was then
// put back and fired; or true, and it fired.
func TestRussellLuo31_StopDuringFlush(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(1), timer.WithWheelSize(4))
	for round := range 100 {
		const n = 700
		ran, stopped := make([]int, n), make([]bool, n)
		hs := make([]timer.Handle, n)
		for i := range hs {
			hs[i] = start(t, s, time.Duration(16+i%3), func() { ran[i]++ })
		}
		var wg sync.WaitGroup
		var begun atomic.Bool
		wg.Go(func() {
			begun.Store(true)
			for i := range hs {
				j := (i + 97*round) % n
				stopped[j] = hs[j].Stop()
			}
		})
		for !begun.Load() {
			runtime.Gosched()
		}
		clk.Advance(16)
		wg.Wait()
		clk.Advance(100)
		for i := range hs {
			if stopped[i] {
				require.Zero(t, ran[i])
			} else {
				require.Equal(t, 1, ran[i])
			}
		}
	}
}

// A third of its timers fired before their time, for deadlines round down.
func TestRussellLuo_NoneEarly(t *testing.T) {
	s := timer.New(timer.WithTick(time.Millisecond))
	var early atomic.Int64
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		d := time.Duration(rng.IntN(int(50 * time.Millisecond)))
		due := time.Now().Add(d)
		start(t, s, d, func() {
			if time.Now().Before(due) {
				early.Inc()
			}
		})
	}
	for s.Len() > 0 {
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, s.Shutdown(context.Background()))
	require.Zero(t, early.Load())
}

func TestRussellLuo49_NoGoroutineLeft(t *testing.T) {
	goroutines, descriptors := settled(t)
	for range 10 {
		s := timer.New()
		start(t, s, time.Hour, func() {})
		s.Close()
	}
	released(t, "closed", goroutines, descriptors)
}

// Of several equal timers only one ran.
func TestRussellLuo41_EqualTimersAllRun(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(time.Millisecond))
	n := 0
	f := func() { n++ }
	for range 10 {
		start(t, s, time.Second, f)
		s.AfterFunc(time.Second, f)
	}
	clk.Advance(time.Second)
	require.Equal(t, 20, n)
}

func TestRussellLuo_MaxInt64DoesNotFireAtOnce(t *testing.T) {
	s, clk := virtual(t)
	clk.Advance(time.Second)
	tm := s.AfterFunc(math.MaxInt64, func() { t.Error("fired") })
	clk.Advance(100 * 365 * 24 * time.Hour)
	require.True(t, tm.Stop())
}

// A small wheel overflowed the stack.
func TestRussellLuo_SmallWheel(t *testing.T) {
	s, clk := virtual(t, timer.WithWheelSize(2), timer.WithTick(1))
	ran := false
	start(t, s, time.Hour, func() { ran = true })
	clk.Advance(time.Hour)
	require.True(t, ran)
}

// A task that panicked killed the process.
func TestRussellLuo_PanicIsRecovered(t *testing.T) {
	told := make(chan any, 1)
	s := timer.New(timer.WithPanicHandler(func(v any, _ []byte) { told <- v }))
	start(t, s, time.Millisecond, func() { panic("boom") })
	require.Equal(t, "boom", <-told)
	require.NoError(t, s.Shutdown(context.Background()))
}

// AfterFunc after Stop never fired and said nothing; a second Stop panicked.
func TestRussellLuo_AfterClose(t *testing.T) {
	s, clk := virtual(t)
	s.Close()
	tm := s.AfterFunc(time.Second, func() { t.Error("fired") })
	require.False(t, tm.Stop())
	require.False(t, tm.Reset(time.Second))
	require.EqualValues(t, 2, s.Stats().Rejected)
	require.Nil(t, closeAll(s))
	require.NoError(t, s.Shutdown(context.Background()))
	require.NoError(t, s.Shutdown(context.Background()))
	clk.Advance(time.Hour)
}

// The wheel's time lagged while many goroutines added: here each moment's timers
// have fired when the clock leaves it, whatever the others do.
func TestRussellLuo_TimeDoesNotLagUnderManyAdders(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(time.Millisecond), timer.WithShards(2))
	var stop atomic.Bool
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(9, uint64(g)))
			for !stop.Load() {
				h, _ := s.Start(time.Duration(1+rng.Int64N(int64(10*time.Second))), func() {})
				if rng.IntN(2) == 0 {
					h.Stop()
				}
				if s.Len() > 20_000 {
					runtime.Gosched()
				}
			}
		})
	}
	for range 200 {
		due := clk.Now().Add(5 * time.Millisecond)
		var at time.Time
		start(t, s, 5*time.Millisecond, func() { at = clk.Now() })
		clk.Advance(6 * time.Millisecond)
		require.True(t, !at.Before(due) && at.Before(due.Add(time.Millisecond)), "late by %v", at.Sub(due))
	}
	stop.Store(true)
	wg.Wait()
}

// Reset of a timer that had fired was lost.
func TestAntlabs_ResetAfterFiring(t *testing.T) {
	s, clk := virtual(t)
	n := 0
	tm := s.AfterFunc(time.Second, func() { n++ })
	for i := range 10 {
		clk.Advance(time.Second)
		require.Equal(t, i+1, n)
		require.False(t, tm.Reset(time.Second))
	}
	tm.Stop()
}

// AfterFunc(-1s) never fired.
func TestAntlabs_NegativeDelay(t *testing.T) {
	s, clk := virtual(t)
	ran := false
	s.AfterFunc(-time.Second, func() { ran = true })
	clk.Advance(0)
	require.True(t, ran)
}

// Stop of a timer that had fired cancelled another one.
func TestAntlabs_StopOfAFiredTimerTouchesNoOther(t *testing.T) {
	s, clk := virtual(t)
	fired := s.AfterFunc(time.Second, func() {})
	h := start(t, s, time.Second, func() {})
	clk.Advance(time.Second)
	n := 0
	for range 10 {
		start(t, s, time.Second, func() { n++ })
		require.False(t, fired.Stop())
		require.False(t, h.Stop())
	}
	clk.Advance(time.Second)
	require.Equal(t, 10, n)
}

// C held a value from before a Reset.
func TestRfyiamcool_NoStaleValueAfterReset(t *testing.T) {
	s, clk := virtual(t)
	tm := s.NewTimer(time.Second)
	for range 5 {
		clk.Advance(time.Second)
		require.True(t, tm.Reset(time.Second), "what was sent is withdrawn, and counts as not sent")
		require.Empty(t, tm.C)
	}
	clk.Advance(time.Second)
	require.Equal(t, clk.Now(), <-tm.C)
}

// A second Stop blocked.
func TestRfyiamcool_StopTwice(t *testing.T) {
	soon(t, func() {
		s := timer.New()
		tm, tick := s.NewTimer(time.Hour), s.NewTicker(time.Hour)
		tm.Stop()
		tm.Stop()
		tick.Stop()
		tick.Stop()
		s.Close()
		s.Close()
	})
}

// A stopped AfterFunc timer kept its argument alive for as long as the heap kept
// the timer; ours is out at once. Who holds a Handle holds nothing of it.
func TestGo75935_StoppedTimerLetsGo(t *testing.T) {
	s, _ := virtual(t)
	o := new(object)
	all := map[string][]weak.Pointer[object]{"stopped": {weak.Make(o)}}
	h := start(t, s, time.Hour, func() { o.n++ })
	tm := s.AfterFunc(time.Hour, func() { o.n++ })
	require.True(t, h.Stop())
	require.True(t, tm.Stop())
	gone(t, all)
	runtime.KeepAlive(h)
	runtime.KeepAlive(s)
}
