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

// Tests of a Scheduler for bugs of Apache Kafka's timer. Package timingwheel has those of
// the wheel alone.

// In Kafka, the wheel's clock stood still while there were no timers. The next timer, of
// 1 ms, then moved down through four wheels.
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

// In Kafka, a task was cancelled while its bucket moved down a level. It was subtracted
// from the count twice, or ran nevertheless.
func TestKafka2226_CancelRacesReinsertion(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(1), timer.WithWheelSize(4))
	const n = 2000
	for round := range 50 {
		// All timers are on the second level or higher.
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

// In Kafka, the reaper spun if a timer was far ahead.
func TestKafkaPR13820_FarTimerDoesNotSpin(t *testing.T) {
	s := timer.New(timer.WithTick(time.Millisecond))
	defer s.Close()
	for _, d := range []time.Duration{math.MaxInt64, 1 << 62, 30 * 365 * 24 * time.Hour, 30 * 24 * time.Hour} {
		start(t, s, d, func() {})
	}
	time.Sleep(50 * time.Millisecond)
	require.LessOrEqual(t, s.Stats().Wakeups, uint64(1))

	// In a virtual month the poller wakes up once for each level.
	v, clk := virtual(t, timer.WithTick(time.Millisecond))
	for _, d := range []time.Duration{math.MaxInt64, 1 << 62, 30 * 365 * 24 * time.Hour, 30 * 24 * time.Hour} {
		start(t, v, d, func() {})
	}
	clk.Advance(30 * 24 * time.Hour)
	require.EqualValues(t, 1, v.Stats().Fired)
	require.LessOrEqual(t, v.Stats().Wakeups, uint64(10))
}

// In Kafka, Close waited for the poll timeout although nothing was due.
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

// Starts the 585 timers of Kafka's own test. They fire in the order of their deadlines.
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
