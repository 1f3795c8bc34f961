package keyed_test

import (
	"context"
	"io"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/timer"
)

// In pipe-cd/pipecd#7406, a cache returned expired values until the timer fired.
func TestExpired_IsGoneForEveryReader(t *testing.T) {
	for name, gone := range map[string]func(*testing.T, *keyed.Timers[string, int]){
		"Get": func(t *testing.T, k *keyed.Timers[string, int]) {
			v, ok := k.Get("token")
			require.False(t, ok)
			require.Zero(t, v)
		},
		"Deadline": func(t *testing.T, k *keyed.Timers[string, int]) {
			_, ok := k.Deadline("token")
			require.False(t, ok)
		},
		"All":   func(t *testing.T, k *keyed.Timers[string, int]) { require.Empty(t, maps.Collect(k.All())) },
		"Items": func(t *testing.T, k *keyed.Timers[string, int]) { require.Empty(t, slices.Collect(k.Items())) },
		"GetAndMove": func(t *testing.T, k *keyed.Timers[string, int]) {
			_, ok := k.GetAndMove("token", time.Hour)
			require.False(t, ok)
		},
		"GetOrLoad": func(t *testing.T, k *keyed.Timers[string, int]) {
			_, err := k.GetOrLoad(t.Context(), "token", time.Hour, func(context.Context) (int, error) { return 0, io.EOF })
			require.Equal(t, io.EOF, err)
		},
		"Move": func(t *testing.T, k *keyed.Timers[string, int]) { require.False(t, k.Move("token", time.Hour)) },
		"Remove": func(t *testing.T, k *keyed.Timers[string, int]) {
			_, ok := k.Remove("token")
			require.False(t, ok)
		},
		"Drain": func(t *testing.T, k *keyed.Timers[string, int]) {
			require.Zero(t, k.Drain(func(string, int) { t.Error("drained") }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, clk := virtual(t, timer.WithTick(time.Second))
			var fired []int
			k := keyed.New(s, func(_ string, v int) { fired = append(fired, v) })
			require.NoError(t, k.Set("token", 1, 20*time.Millisecond))
			clk.Advance(20 * time.Millisecond)
			require.Empty(t, fired, "it fires at the next tick")
			gone(t, k)
			clk.Advance(time.Second)
			require.Equal(t, []int{1}, fired)
			require.Zero(t, s.Len())
		})
	}
}

// A value that replaces an expired one starts a new timer. Both values reach the
// callback.
func TestExpired_SetBeginsAnew(t *testing.T) {
	for name, set := range map[string]func(k *keyed.Timers[string, int]) bool{
		"Set": func(k *keyed.Timers[string, int]) bool { return k.Set("token", 2, 3*time.Second) == nil },
		"SetIfAbsent": func(k *keyed.Timers[string, int]) bool {
			ok, err := k.SetIfAbsent("token", 2, 3*time.Second)
			return ok && err == nil
		},
		"Swap": func(k *keyed.Timers[string, int]) bool {
			_, replaced, err := k.Swap("token", 2, 3*time.Second)
			return !replaced && err == nil
		},
		"GetOrLoad": func(k *keyed.Timers[string, int]) bool {
			v, err := k.GetOrLoad(context.Background(), "token", 3*time.Second, func(context.Context) (int, error) { return 2, nil })
			return v == 2 && err == nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, clk := virtual(t, timer.WithTick(time.Second))
			var fired []int
			k := keyed.New(s, func(_ string, v int) { fired = append(fired, v) })
			require.NoError(t, k.Set("token", 1, 20*time.Millisecond))
			clk.Advance(20 * time.Millisecond)
			require.True(t, set(k))
			clk.Advance(980 * time.Millisecond)
			require.Equal(t, []int{1}, fired)
			v, ok := k.Get("token")
			require.True(t, ok, "the old callback does not remove the new value")
			require.Equal(t, 2, v)
			require.Equal(t, 1, k.Len())
			clk.Advance(time.Hour)
			require.Equal(t, []int{1, 2}, fired)
			require.Zero(t, k.Len())
			balanced(t, s.Stats())
		})
	}
}

func TestSetIfAbsent(t *testing.T) {
	s, clk := virtual(t, timer.WithMaxPending(1))
	var fired []int
	k := keyed.New(s, func(_ string, v int) { fired = append(fired, v) })
	for v := range 3 {
		set, err := k.SetIfAbsent("a", v, time.Minute)
		require.NoError(t, err)
		require.Equal(t, v == 0, set)
	}
	set, err := k.SetIfAbsent("b", 1, time.Minute)
	require.ErrorIs(t, err, timer.ErrTooManyPending)
	require.False(t, set)
	clk.Advance(time.Minute)
	require.Equal(t, []int{0}, fired)
	set, err = k.SetIfAbsent("a", 3, time.Minute)
	require.NoError(t, err)
	require.True(t, set)
	s.Close()
	_, err = k.SetIfAbsent("b", 1, time.Minute)
	require.ErrorIs(t, err, timer.ErrClosed)
}

// Each value that replaced an expired one reaches the callback too, once, in their order.
func TestExpired_SetAgainAndAgain(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(time.Second))
	var fired []int
	k := keyed.New(s, func(_ string, v int) { fired = append(fired, v) })
	for v := range 5 {
		require.NoError(t, k.Set("token", v, 20*time.Millisecond))
		clk.Advance(20 * time.Millisecond)
	}
	require.NoError(t, k.Set("token", 5, time.Hour))
	require.Equal(t, 1, k.Len())
	clk.Advance(time.Second)
	require.Equal(t, []int{0, 1, 2, 3, 4}, fired)
	v, ok := k.Remove("token")
	require.True(t, ok)
	require.Equal(t, 5, v)
	require.Zero(t, s.Len())
}

// Len does not look at each key: see BenchmarkLen_WhileKeysExpire. It counts a key until
// its callback begins.
func TestLen_WhileKeysExpire(t *testing.T) {
	s, clk := virtual(t)
	k := keyed.New(s, func(int, int) {})
	const n = 500
	for i := range n {
		require.NoError(t, k.Set(i, i, time.Duration(i+1)*time.Second))
	}
	for i := range n {
		require.Equal(t, n-i, k.Len())
		clk.Advance(time.Second)
	}
	require.NoError(t, k.Set(0, 0, time.Hour))
	require.Equal(t, 1, k.Len())
	require.True(t, k.Move(0, time.Second))
	clk.Advance(time.Second)
	require.Zero(t, k.Len())
}

// While the executor is busy, a key is not found between its deadline and its firing, and
// fires once.
func TestExpired_UnderABusyExecutor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		release := make(chan struct{})
		fired := 0
		k := keyed.New(s, func(_ string, v int) {
			<-release
			fired += v
		})
		require.NoError(t, k.Set("a", 1, time.Second))
		time.Sleep(2 * time.Second)
		_, ok := k.Get("a")
		require.False(t, ok)
		require.NoError(t, k.Set("a", 10, time.Second))
		v, ok := k.Get("a")
		require.True(t, ok)
		require.Equal(t, 10, v)
		close(release)
		require.NoError(t, s.Shutdown(t.Context()))
		require.Equal(t, 1, fired)
	})
}
