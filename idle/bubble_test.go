package idle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/idle"
)

// A Monitor that was closed in a bubble may be closed and shut down again after the
// bubble has ended.
func TestMonitor_ClosedInABubbleAndAgainOutside(t *testing.T) {
	for name, opts := range map[string][]idle.Option{"": nil, "panics": {idle.WithPanicHandler(func(any, []byte) {})}} {
		t.Run(name, func(t *testing.T) {
			var m *idle.Monitor[int]
			var e *idle.Entry[int]
			synctest.Test(t, func(t *testing.T) {
				m = idle.New(func(int, time.Time) {}, opts...)
				m.Watch(1, time.Minute)
				e, _ = m.Watch(2, 10*time.Hour)
				time.Sleep(time.Hour)
				require.NoError(t, m.Close())
			})
			require.NoError(t, m.Close())
			require.NoError(t, m.Shutdown(context.Background()))
			require.False(t, e.Touch())
			require.False(t, e.Stop())
			_, err := m.Watch(3, time.Second)
			require.ErrorIs(t, err, idle.ErrClosed)
		})
	}
}

// A touch across the border of a testing/synctest bubble, in either direction, delays the
// eviction. The Monitor does not know the time of such a touch.
func TestMonitor_WatchesCrossTheBordersOfBubbles(t *testing.T) {
	const timeout = 100 * time.Millisecond
	evicted := make(chan string, 10)
	m := idle.New(func(v string, _ time.Time) { evicted <- v }, idle.WithTick(time.Millisecond))
	defer m.Close()
	a, err := m.Watch("touched", timeout)
	require.NoError(t, err)
	b, _ := m.Watch("shortened", time.Hour)
	c, _ := m.Watch("stopped", time.Hour)
	synctest.Test(t, func(t *testing.T) {
		require.True(t, a.Touch())
		require.True(t, a.TouchAt(m.Now()))
		require.True(t, b.SetTimeout(timeout))
		require.Equal(t, timeout, b.Timeout())
		require.True(t, c.Stop())
		require.False(t, c.Touch())
		require.Equal(t, 2, m.Len())
	})
	require.True(t, b.SetTimeout(timeout/2), "outside it moves the timer")
	for _, want := range []string{"shortened", "touched"} {
		require.Equal(t, want, <-evicted)
	}
	require.False(t, a.Touch())
	require.Less(t, time.Until(m.Time(a.Last())), time.Hour, "the moment of the check")

	calls, called := make(chan func()), make(chan struct{})
	go func() {
		defer close(called)
		for f := range calls {
			f()
			called <- struct{}{}
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		evicted := make(chan time.Time, 1)
		m := idle.New(func(string, time.Time) { evicted <- time.Now() }, idle.WithSlackShare(0))
		e, err := m.Watch("inside", timeout)
		require.NoError(t, err)
		begin := time.Now()
		time.Sleep(timeout / 2)
		calls <- func() {
			assert.True(t, e.Touch())
			assert.True(t, e.SetTimeout(timeout/2))
			assert.True(t, e.SetTimeout(timeout))
			assert.PanicsWithValue(t, elsewhere, func() { m.Watch("", timeout) })
			assert.PanicsWithValue(t, elsewhere, func() { m.Close() })
		}
		<-called
		require.Equal(t, 2*timeout, (<-evicted).Sub(begin).Round(idle.DefaultTick))
		require.NoError(t, m.Close())
	})
	require.Empty(t, evicted)
	close(calls)
	<-called
}
