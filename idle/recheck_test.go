package idle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/idle"
)

// Connections that send heartbeats are checked in groups, a few times a second.
func TestMonitor_ChecksManyTogether(t *testing.T) {
	const n, timeout = 1000, 30 * time.Second
	w := virtual(t, idle.WithSlackShare(idle.DefaultSlack))
	es := make([]*idle.Entry[string], n)
	for i := range es {
		es[i] = w.watch(t, fmt.Sprint(i), timeout)
		w.clk.Advance(7 * time.Millisecond)
	}
	second := 0
	// heartbeats sends a heartbeat to each entry every 5 s, for the time d. It returns
	// how often the clock's alarm went off.
	heartbeats := func(d time.Duration) (rang int) {
		for end := w.clk.Now().Add(d); w.clk.Now().Before(end); second++ {
			for i := second % 5; i < n; i += 5 {
				require.True(t, es[i].TouchAt(w.Now()-idle.Moment(i)*idle.Moment(time.Millisecond)))
			}
			next := w.clk.Now().Add(time.Second)
			for at, ok := w.clk.Next(); ok && at.Before(next); at, ok = w.clk.Next() {
				w.clk.AdvanceTo(at)
				rang++
			}
			w.clk.AdvanceTo(next)
		}
		return rang
	}
	heartbeats(time.Minute)
	before := w.Stats().Rearmed
	rang := heartbeats(time.Minute)
	checks := int(w.Stats().Rearmed - before)
	require.Less(t, rang, 60*5, "wake-ups in a minute")
	require.GreaterOrEqual(t, checks, 2*n)
	require.Less(t, checks, 3*n, "each about once in its timeout")
	require.Empty(t, w.evicted)

	w.clk.Advance(time.Minute)
	require.Len(t, w.take(), n)
	require.Zero(t, w.Len())
}

// Without slack, a touched entry is evicted on time, whatever the tick and the timeout.
func TestMonitor_PunctualAfterTouches(t *testing.T) {
	for _, timeout := range []time.Duration{7, 63, time.Microsecond, time.Second, 30*time.Second + 1, time.Hour, 9000 * time.Hour} {
		for _, tick := range []time.Duration{1, time.Microsecond, tick, time.Second, time.Minute} {
			w := virtual(t, idle.WithTick(tick))
			w.clk.Advance(timeout/3 + 5) // so that the times are not round
			e := w.watch(t, "x", timeout)
			var last time.Duration
			for range 7 {
				w.clk.Advance(timeout - timeout/7)
				require.True(t, e.Touch())
				last = w.clk.Now().Sub(epoch)
			}
			w.clk.Advance(timeout - 1)
			require.Empty(t, w.evicted, "early: timeout %v, tick %v", timeout, tick)
			w.clk.Advance(tick)
			require.Len(t, w.evicted, 1, "late: timeout %v, tick %v", timeout, tick)
			require.Equal(t, last, w.evicted[0].since)
			require.LessOrEqual(t, w.Stats().Rearmed, uint64(2*7+1))
		}
	}
}

// Very many entries are due at once. The touched entries stay, and the others are
// evicted.
func TestMonitor_ManyAtOneMoment(t *testing.T) {
	const n, timeout = 1000, time.Second
	w := virtual(t)
	es := make([]*idle.Entry[string], n)
	for i := range es {
		es[i] = w.watch(t, fmt.Sprint(i), timeout)
	}
	w.clk.Advance(timeout / 2)
	for _, e := range es[n/2:] {
		require.True(t, e.Touch())
	}
	w.clk.Advance(timeout / 2)
	require.Len(t, w.take(), n/2)
	w.clk.Advance(timeout / 2)
	require.Len(t, w.take(), n/2)
}
