package timer_test

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/timer"
)

// What went wrong in Apache Kafka's timer, and what its tests ask for, on a whole
// Scheduler. The tests of its timing wheel alone are package timingwheel's
// (kafka_test.go); that of KAFKA-2112 is in regress_internal_test.go.

// A delay of 5 ms ran after 4.1, and one of 150 ms at a tick of 100 after 91:
// a bucket was due at the beginning of its tick.
func TestKafka_NoTickEarly(t *testing.T) {
	for _, c := range []struct{ tick, begin, delay, want time.Duration }{
		{time.Millisecond, 900 * time.Microsecond, 5 * time.Millisecond, 6 * time.Millisecond},
		{100 * time.Millisecond, 59 * time.Millisecond, 150 * time.Millisecond, 300 * time.Millisecond},
	} {
		s, clk := virtual(t, timer.WithTick(c.tick))
		clk.Advance(c.begin)
		var at time.Duration
		start(t, s, c.delay, func() { at = clk.Now().Sub(epoch) })
		clk.Advance(time.Second)
		require.Equal(t, c.want, at)
		require.GreaterOrEqual(t, at-c.begin, c.delay)
	}
}

// Long.MAX_VALUE overflowed and ran at once; 1.7e18 ms, which is beyond what a
// duration holds, stopped the reaper for good.
func TestKafka_LongestDelays(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(time.Millisecond))
	clk.Advance(time.Hour)
	for _, d := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, 1.7e18, math.MaxInt64 - time.Hour} {
		start(t, s, d, func() { t.Errorf("%v has passed at %v", d, clk.Now()) })
	}
	ran := 0
	for range 1000 {
		start(t, s, time.Second, func() { ran++ })
		clk.Advance(time.Second)
	}
	require.Equal(t, 1000, ran)
	require.Equal(t, 4, s.Len())
	require.LessOrEqual(t, s.Stats().Wakeups, uint64(2*1000))
}

// After 9 s without a timer, one of 1 ms made four wheels, because the clock had
// stood still, and came down through all of them.
func TestKafka_ClockIsNotStale(t *testing.T) {
	for _, far := range []bool{false, true} {
		s, clk := virtual(t, timer.WithTick(time.Millisecond), timer.WithWheelSize(4))
		if far {
			start(t, s, 10*time.Hour, func() {})
		}
		clk.Advance(9 * time.Second)
		ran := false
		before := s.Stats()
		start(t, s, time.Millisecond, func() { ran = true })
		clk.Advance(time.Millisecond)
		require.True(t, ran)
		st := s.Stats()
		require.Equal(t, before.Cascaded, st.Cascaded)
		require.Equal(t, before.Wakeups+1, st.Wakeups)
	}
}

// The executor swallowed exceptions, and its one thread made all wait for a slow
// task.
func TestKafka_SlowTaskAndException(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		s := timer.New(timer.WithPanicHandler(func(v any, stack []byte) {
			if v == "boom" && len(stack) > 0 {
				told.Inc()
			}
		}))
		slow := make(chan struct{})
		var ran atomic.Int64
		start(t, s, time.Second, func() { <-slow })
		start(t, s, time.Second, func() { panic("boom") })
		for range 100 {
			start(t, s, time.Second, func() { ran.Inc() })
		}
		time.Sleep(time.Second + 10*time.Millisecond)
		require.EqualValues(t, 100, ran.Load())
		require.EqualValues(t, 1, told.Load())
		close(slow)
		require.NoError(t, s.Shutdown(context.Background()))
	})
}

// After close a task was accepted and never ran.
func TestKafka_AddAfterClose(t *testing.T) {
	s, _ := virtual(t)
	s.Close()
	_, err := s.Start(time.Second, func() {})
	require.ErrorIs(t, err, timer.ErrClosed)
	require.False(t, s.AfterFunc(time.Second, func() {}).Stop())
	require.EqualValues(t, 2, s.Stats().Rejected)
}

// A task that was cancelled while its bucket was moved down a level was
// decremented twice, or came back and ran.
func TestKafka2226_CancelRacesReinsertion(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(1), timer.WithWheelSize(4))
	const n = 2000
	for round := range 50 {
		// All are in buckets of the second level or higher.
		runs, stops := make([]int32, n), make([]int32, n)
		hs := make([]timer.Handle, n)
		for i := range hs {
			hs[i] = start(t, s, time.Duration(8+i%40), func() { runs[i]++ })
		}
		order := rand.New(rand.NewPCG(1, uint64(round))).Perm(n)
		var wg sync.WaitGroup
		var ready atomic.Bool
		wg.Go(func() {
			ready.Store(true)
			for _, i := range order {
				if hs[i].Stop() {
					stops[i]++
				}
			}
		})
		for !ready.Load() {
			runtime.Gosched()
		}
		clk.Advance(60)
		wg.Wait()
		require.Zero(t, s.Len(), "the size returns to zero")
		for i := range hs {
			require.EqualValues(t, 1, runs[i]+stops[i])
		}
	}
	balanced(t, s.Stats())
}

// The delay counted from when the wheel's clock had last moved.
func TestKafka3470_DelayCountsFromTheAdd(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(time.Millisecond))
	start(t, s, time.Hour, func() {})
	for range 20 {
		clk.Advance(777 * time.Millisecond) // nothing expires
		added := clk.Now()
		var at time.Time
		start(t, s, 30*time.Millisecond, func() { at = clk.Now() })
		clk.Advance(31 * time.Millisecond)
		require.False(t, at.IsZero())
		require.GreaterOrEqual(t, at.Sub(added), 30*time.Millisecond)
	}
}

// Deadlines followed the wall clock.
func TestKafka4051_WallClockJumps(t *testing.T) {
	s, clk := virtual(t)
	for _, jump := range []time.Duration{time.Hour, -24 * time.Hour, 365 * 24 * time.Hour} {
		ran := false
		start(t, s, time.Minute, func() { ran = true })
		clk.SetWall(clk.Wall().Add(jump))
		clk.Advance(time.Minute - 1)
		require.False(t, ran)
		clk.Advance(1)
		require.True(t, ran)
	}
}

// A far timer made the reaper spin.
func TestKafkaPR13820_FarTimerDoesNotSpin(t *testing.T) {
	s := timer.New(timer.WithTick(time.Millisecond))
	defer s.Close()
	for _, d := range []time.Duration{math.MaxInt64, 1 << 62, 30 * 365 * 24 * time.Hour, 30 * 24 * time.Hour} {
		start(t, s, d, func() {})
	}
	time.Sleep(50 * time.Millisecond)
	require.LessOrEqual(t, s.Stats().Wakeups, uint64(1))

	// In a month of a virtual clock: one wake-up a level for the one of a month.
	v, clk := virtual(t, timer.WithTick(time.Millisecond))
	for _, d := range []time.Duration{math.MaxInt64, 1 << 62, 30 * 365 * 24 * time.Hour, 30 * 24 * time.Hour} {
		start(t, v, d, func() {})
	}
	clk.Advance(30 * 24 * time.Hour)
	require.EqualValues(t, 1, v.Stats().Fired)
	require.LessOrEqual(t, v.Stats().Wakeups, uint64(10))
}

// Threads were left after close.
func TestKafka16065And16477_NothingLeftAfterClose(t *testing.T) {
	goroutines, descriptors := settled(t)
	for range 20 {
		s := timer.New()
		start(t, s, time.Hour, func() {})
		start(t, s, 0, func() {})
		require.NoError(t, s.Shutdown(context.Background()))
	}
	released(t, "after 20 Schedulers", goroutines, descriptors)
}

// Close waited for the poll timeout while the timer was idle.
func TestKafka0b9a8bac_CloseIsPromptWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		start(t, s, time.Hour, func() {})
		time.Sleep(time.Minute)
		before := time.Now()
		require.NoError(t, s.Shutdown(context.Background()))
		require.Zero(t, time.Since(before))
	})
	s := timer.New()
	start(t, s, time.Hour, func() {})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, s.Shutdown(ctx))
}

func TestKafka_AlreadyExpiredTasksRunAtOnce(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(time.Millisecond), timer.WithWheelSize(4))
	var got []int
	for i := -5; i < 0; i++ {
		start(t, s, time.Duration(i)*time.Millisecond, func() { got = append(got, i) })
	}
	require.Empty(t, got, "inside Start")
	clk.Advance(0)
	require.Equal(t, []int{-5, -4, -3, -2, -1}, got)
}

// Delays of 0 to 4 once, 10 to 99 twice, 100 to 499 once.
func TestKafka_585RunsInTheOrderOfDeadlines(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(time.Millisecond), timer.WithWheelSize(4))
	var got, want []int
	task := func(ms int) {
		start(t, s, time.Duration(ms)*time.Millisecond, func() {
			require.Equal(t, epoch.Add(time.Duration(ms)*time.Millisecond), clk.Now())
			got = append(got, ms)
		})
		want = append(want, ms)
	}
	for ms := range 5 {
		task(ms)
	}
	for ms := 10; ms < 100; ms++ {
		task(ms)
		task(ms)
	}
	for ms := 100; ms < 500; ms++ {
		task(ms)
	}
	clk.Advance(time.Second)
	require.Len(t, got, 585)
	slices.Sort(want)
	require.Equal(t, want, got)
}
