package keyed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/timer"
)

// Bugs of other libraries with timers by key.

// A bug of go-zero: after a Drain, a Set of the same key never fired.
func TestGoZero_SetAfterDrain(t *testing.T) {
	s, clk := virtual(t)
	var fired []int
	k := keyed.New(s, func(_ string, v int) { fired = append(fired, v) })
	require.NoError(t, k.Set("key", 1, time.Second))
	require.Equal(t, 1, k.Drain(func(string, int) {}))
	require.NoError(t, k.Set("key", 2, time.Second))
	clk.Advance(time.Minute)
	require.Equal(t, []int{2}, fired)
}

// A bug of go-zero (#5316): if Move set a delay below the interval, the task ran twice.
func TestGoZero5316_MoveBelowTheInterval(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(time.Second))
	var at []time.Duration
	k := keyed.New(s, func(string, int) { at = append(at, clk.Now().Sub(epoch)) })
	require.NoError(t, k.Set("a", 1, 5*time.Second))
	require.True(t, k.Move("a", 10*time.Millisecond))
	require.NoError(t, k.Set("b", 1, 5*time.Second))
	require.True(t, k.Move("b", 0))
	require.NoError(t, k.Set("c", 1, 5*time.Second))
	require.NoError(t, k.Set("c", 1, time.Nanosecond))
	clk.Advance(time.Minute)
	require.Equal(t, []time.Duration{0, time.Second, time.Second}, at, "each once, at the next tick")
	require.Zero(t, k.Len())
}

// A bug of go-zero: a Drain whose callback called Set deadlocked.
func TestGoZero_SetFromDrain(t *testing.T) {
	s, clk := virtual(t)
	fired := 0
	k := keyed.New(s, func(int, int) { fired++ })
	for i := range 1000 {
		require.NoError(t, k.Set(i, 0, time.Second))
	}
	require.Equal(t, 1000, k.Drain(func(key, v int) {
		require.NoError(t, k.Set(key, v+1, time.Second))
		require.NoError(t, k.Set(-key-1, v, time.Second))
		k.Move(key, 2*time.Second)
		k.Remove(-key - 1)
		require.Positive(t, k.Len())
	}))
	require.Equal(t, 1000, k.Len())
	clk.Advance(2 * time.Second)
	require.Equal(t, 1000, fired)
}

// A bug of go-zero (#205): after a Move and a Remove, the task still ran.
func TestGoZero205_MoveThenRemove(t *testing.T) {
	for _, d := range []time.Duration{time.Millisecond, time.Second, 90 * time.Minute} {
		s, clk := virtual(t)
		k := keyed.New(s, func(string, int) { t.Errorf("ran after Remove, moved by %v", d) })
		require.NoError(t, k.Set("key", 1, 10*time.Second))
		require.True(t, k.Move("key", d))
		v, ok := k.Remove("key")
		require.True(t, ok)
		require.Equal(t, 1, v)
		clk.Advance(24 * time.Hour)
		require.Zero(t, s.Stats().Fired)
	}
}

// A bug of go-zero: a key that cannot be hashed ended the process, because the panic was
// not on the caller's goroutine.
func TestGoZero_UnhashableKey(t *testing.T) {
	s, clk := virtual(t)
	fired := 0
	k := keyed.New(s, func(any, any) { fired++ })
	require.Panics(t, func() { k.Set([]byte("key"), 1, time.Second) })
	require.NoError(t, k.Set("key", []byte("value"), time.Second))
	clk.Advance(time.Second)
	require.Equal(t, 1, fired, "the Timers stay usable")
}

// A bug of go-zero (#3789): one slow task delayed the others of the same tick.
func TestGoZero3789_SlowTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		begin := time.Now()
		release := make(chan struct{})
		at := make(chan time.Duration, 100)
		k := keyed.New(s, func(key, _ int) {
			if key%10 == 0 {
				<-release
				return
			}
			at <- time.Since(begin)
		})
		for i := range 100 {
			require.NoError(t, k.Set(i, i, time.Second))
		}
		for range 90 {
			// The pool notices after a few checks, a millisecond apart, that it must
			// grow.
			require.InDelta(t, time.Second, <-at, float64(20*time.Millisecond))
		}
		close(release)
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

// A bug of go-zero (#3619): the process was suspended and missed ticks. Afterwards all
// ticks were late by the same time.
func TestGoZero3619_MissedTicks(t *testing.T) {
	s, clk := virtual(t)
	var late []time.Duration
	k := keyed.New(s, func(due time.Time, _ int) { late = append(late, clk.Now().Sub(due)) })
	set := func(d time.Duration) { require.NoError(t, k.Set(clk.Now().Add(d), 1, d)) }
	set(time.Second)
	set(time.Hour)
	clk.Suspend(10 * time.Minute)
	require.Equal(t, []time.Duration{10*time.Minute - time.Second}, late)
	set(time.Second)
	clk.Suspend(time.Second)
	require.Equal(t, []time.Duration{10*time.Minute - time.Second, 0}, late, "set after the pause")
	clk.Suspend(50*time.Minute - time.Second)
	require.Equal(t, []time.Duration{10*time.Minute - time.Second, 0, 0}, late, "set before the pause")
}

// A bug of go-zero: with an interval of a second, a timer of 1.9 s fired after 10 ms.
func TestGoZero_NeverEarly(t *testing.T) {
	for _, into := range []time.Duration{0, 1, 100 * time.Millisecond, 990 * time.Millisecond, time.Second - 1} {
		s, clk := virtual(t, timer.WithTick(time.Second))
		clk.Advance(into)
		var at []time.Duration
		k := keyed.New(s, func(string, int) { at = append(at, clk.Now().Sub(epoch)) })
		require.NoError(t, k.Set("key", 1, 1900*time.Millisecond))
		clk.Advance(time.Minute)
		require.Len(t, at, 1)
		require.GreaterOrEqual(t, at[0]-into, 1900*time.Millisecond, "early")
		require.Less(t, at[0]-into, 2900*time.Millisecond, "late by more than a tick")
	}
}

// A bug of ouqiang/timewheel: adding to a stopped timer blocked for ever.
func TestOuqiang_SetAfterClose(t *testing.T) {
	s := timer.New()
	k := keyed.New(s, func(string, int) { t.Error("ran") })
	s.Close()
	require.ErrorIs(t, k.Set("key", 1, time.Second), timer.ErrClosed)
	require.ErrorIs(t, k.Set("key", 1, 0), timer.ErrClosed)
	_, ok := k.Remove("key")
	require.False(t, ok)
	s.Close()
	require.NoError(t, s.Shutdown(t.Context()))
}

// A bug of ouqiang/timewheel: a key was added twice and then removed, but still ran once.
func TestOuqiang_AddedTwiceAndRemoved(t *testing.T) {
	for _, again := range []time.Duration{time.Second, 2 * time.Second, time.Hour, time.Millisecond} {
		s, clk := virtual(t)
		k := keyed.New(s, func(string, int) { t.Errorf("ran: added again for %v", again) })
		require.NoError(t, k.Set("key", 1, time.Second))
		require.NoError(t, k.Set("key", 2, again))
		v, ok := k.Remove("key")
		require.True(t, ok)
		require.Equal(t, 2, v)
		clk.Advance(24 * time.Hour)
		require.Zero(t, k.Len())
	}
}

// A bug of xiaoxuxiansheng/timewheel: a time in the past silently ended its loop.
func TestXiaoxuxiansheng_TimeInThePast(t *testing.T) {
	s, clk := virtual(t)
	var fired []string
	k := keyed.New(s, func(key string, _ int) { fired = append(fired, key) })
	require.NoError(t, k.Set("past", 1, -time.Hour))
	require.NoError(t, k.Set("present", 1, 0))
	require.NoError(t, k.Set("future", 1, time.Second))
	clk.Advance(time.Second)
	require.Equal(t, []string{"past", "present", "future"}, fired)
}
