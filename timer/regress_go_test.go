package timer_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/timer"
)

// Tests for bugs of RussellLuo/timingwheel, a timing wheel in Go.

// In RussellLuo/timingwheel, adding a timer to the bucket that was being flushed waited
// for ever: the flush held the bucket's lock.
func TestRussellLuo53_BackIntoTheBucketBeingFlushed(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(1), timer.WithWheelSize(4))
	n := 0
	for _, turn := range []time.Duration{4, 16, 64} { // the same slot on each level
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
	require.Equal(t, 3*102, n)
	require.Zero(t, s.Len())
}

// In RussellLuo/timingwheel, a bucket's expiration was reset without its lock. If a timer
// was added just then, it never fired.
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

// In RussellLuo/timingwheel, the wheel's time lagged while many timers were added. Here a
// timer fires in its tick nevertheless.
func TestRussellLuo_TimeDoesNotLagUnderManyAdders(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(time.Millisecond), timer.WithShards(2))
	rng := rand.New(rand.NewPCG(9, 0))
	for range 200 {
		for range 500 {
			h := start(t, s, time.Duration(1+rng.Int64N(int64(10*time.Second))), func() {})
			if rng.IntN(2) == 0 {
				h.Stop()
			}
		}
		due := clk.Now().Add(5 * time.Millisecond)
		var at time.Time
		start(t, s, 5*time.Millisecond, func() { at = clk.Now() })
		clk.Advance(6 * time.Millisecond)
		require.True(t, !at.Before(due) && at.Before(due.Add(time.Millisecond)), "late by %v", at.Sub(due))
	}
}
