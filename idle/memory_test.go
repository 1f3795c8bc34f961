package idle_test

import (
	"context"
	"runtime"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/timertest"
)

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var st runtime.MemStats
	runtime.ReadMemStats(&st)
	return st.HeapAlloc
}

func TestMonitor_BytesOfAWatchedThing(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the expected size is that of a 64-bit machine")
	}
	// With a million entries, the memory of the Monitor itself does not matter.
	const n = 1_000_000
	es := make([]*idle.Entry[*int], n)
	m := idle.New(func(*int, time.Time) {})
	before := heap()
	for i := range es {
		es[i], _ = m.Watch(nil, time.Duration(1+i%8)*time.Hour)
	}
	bytes := float64(int64(heap()-before)) / n
	t.Logf("%.1f bytes, 8 of them the value", bytes)
	require.InDelta(t, 48, bytes, 3)
	for _, e := range es {
		require.True(t, e.Stop())
	}
	clear(es)
	require.Less(t, float64(int64(heap()-before))/n, 2.0, "nothing is kept after the peak")
	m.Close()
	runtime.KeepAlive(es)
}

func TestMonitor_KeepsNothingAlive(t *testing.T) {
	clk := timertest.NewClock(epoch)
	m := idle.New(func(*[64]int, time.Time) {}, idle.WithClock(clk), idle.WithSlackShare(0))
	watch := func() (*idle.Entry[*[64]int], weak.Pointer[[64]int]) {
		v := new([64]int)
		e, err := m.Watch(v, time.Minute)
		require.NoError(t, err)
		return e, weak.Make(v)
	}
	e, stopped := watch()
	require.True(t, e.Stop())
	e = nil
	_, evicted := watch()
	clk.Advance(time.Minute)
	_, handedBack := watch()
	require.Len(t, leftover(m), 1)
	runtime.GC()
	runtime.GC()
	require.Nil(t, stopped.Value(), "stopped")
	require.Nil(t, evicted.Value(), "evicted")
	require.Nil(t, handedBack.Value(), "handed back")
	require.NoError(t, m.Shutdown(context.Background()))
}

func TestMonitor_ATouchAllocatesNothing(t *testing.T) {
	m := idle.New(func(int, time.Time) {})
	defer m.Close()
	e, err := m.Watch(1, time.Hour)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(1000, func() { e.Touch() }))
}
