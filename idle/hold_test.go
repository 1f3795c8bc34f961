package idle_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/idle"
)

func TestEntry_HeldWhileACallRuns(t *testing.T) {
	w := virtual(t)
	e := w.watch(t, "peer", time.Minute)
	require.Panics(t, func() { e.Release() }, "not held")
	require.True(t, e.Hold())
	require.True(t, e.Hold())
	w.clk.Advance(time.Hour)
	require.True(t, e.Release())
	w.clk.Advance(time.Hour)
	require.Empty(t, w.evicted, "still held once")
	require.True(t, e.Release())
	w.clk.Advance(time.Minute - 1)
	require.Empty(t, w.evicted, "the timeout counts from the Release")
	w.clk.Advance(time.Minute / 50)
	require.Len(t, w.take(), 1)
	require.False(t, e.Hold())
	require.False(t, e.Release())

	e = w.watch(t, "stopped", time.Minute)
	require.True(t, e.Hold())
	require.True(t, e.Stop())
	require.False(t, e.Release())
	e = w.watch(t, "shorter", time.Hour)
	require.True(t, e.Hold())
	require.True(t, e.SetTimeout(time.Second))
	w.clk.Advance(time.Hour)
	require.Empty(t, w.evicted)
	require.NoError(t, w.Close())
	require.Equal(t, []string{"shorter"}, leftover(w.Monitor))
	require.False(t, e.Release())
}

func TestMonitor_OnIdleDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var evicted []string
		asked := map[string]int{}
		answers := map[string]func() bool{}
		var e *idle.Entry[string]
		begin := time.Now()
		var mu sync.Mutex
		m := idle.New(func(v string, since time.Time) {
			mu.Lock()
			defer mu.Unlock()
			evicted = append(evicted, v+" "+since.Sub(begin).String())
		},
			idle.WithSlackShare(0), idle.WithPanicHandler(func(any, []byte) {}),
			idle.WithOnIdle(func(v string, since time.Time) bool {
				mu.Lock()
				asked[v]++
				answer := answers[v]
				mu.Unlock()
				return answer()
			}))
		askedFor := func(v string) int {
			mu.Lock()
			defer mu.Unlock()
			return asked[v]
		}
		watch := func(v string, answer func() bool) {
			mu.Lock()
			defer mu.Unlock()
			answers[v] = answer
			var err error
			e, err = m.Watch(v, time.Minute)
			require.NoError(t, err)
		}
		takeAt := func(at time.Duration) []string {
			time.Sleep(at - time.Since(begin) + 50*time.Millisecond)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			took := evicted
			evicted = nil
			return took
		}
		watch("yes", func() bool { return true })
		require.Equal(t, []string{"yes 0s"}, takeAt(time.Minute))
		require.False(t, e.Touch())

		begin = time.Now()
		watch("no, no, yes", func() bool { return askedFor("no, no, yes") == 3 })
		require.Empty(t, takeAt(time.Minute))
		require.Empty(t, takeAt(2*time.Minute))
		require.Len(t, takeAt(3*time.Minute), 1)
		require.Equal(t, 3, askedFor("no, no, yes"))

		begin = time.Now()
		watch("slow", func() bool { time.Sleep(time.Hour); return true })
		require.Empty(t, takeAt(30*time.Minute))
		require.Equal(t, []string{"slow 0s"}, takeAt(time.Hour+time.Minute))
		require.Equal(t, 1, askedFor("slow"), "one question at a time")

		begin = time.Now()
		watch("touched meanwhile", func() bool { time.Sleep(time.Second); return true })
		require.Empty(t, takeAt(time.Minute))
		require.True(t, e.Touch())
		require.Empty(t, takeAt(time.Minute+2*time.Second), "Touch returned true")
		require.Len(t, takeAt(2*time.Minute+2*time.Second), 1)

		begin = time.Now()
		watch("stopped meanwhile", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return e.Stop()
		})
		require.Empty(t, takeAt(time.Hour))

		begin = time.Now()
		watch("panics", func() bool { panic("no answer") })
		require.Len(t, takeAt(time.Minute), 1)

		begin = time.Now()
		watch("closed meanwhile", func() bool { m.Close(); return true })
		require.Empty(t, takeAt(time.Hour))
		require.Equal(t, []string{"closed meanwhile"}, leftover(m))
		require.NoError(t, m.Shutdown(t.Context()))
		st := m.Stats()
		require.Equal(t, st.Watched, st.Evicted+st.Stopped+st.HandedBack)
		require.EqualValues(t, 5, st.Evicted)
	})
}

func TestWithOnIdle_OfAnotherType(t *testing.T) {
	other := idle.WithOnIdle(func(int, time.Time) bool { return true })
	require.PanicsWithValue(t, "idle: New: WithOnIdle needs a func(string, time.Time) bool, got a func(int, time.Time) bool",
		func() { idle.New(func(string, time.Time) {}, other) })
	require.Panics(t, func() { idle.NewConns(time.Minute, other) })
}
