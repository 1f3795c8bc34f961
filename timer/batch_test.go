package timer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

func TestBatch_StartsAndStopsEach(t *testing.T) {
	const n = 1000
	s, clk := virtual(t)
	ran := make([]time.Duration, n)
	starts := make([]timer.Start, n)
	for i := range starts {
		starts[i] = timer.Start{Delay: time.Duration(i%10) * time.Second, Func: func() { ran[i] = 1 + s.Now().Sub(epoch) }}
	}
	other := start(t, s, time.Hour, func() {})
	hs := must(s.StartBatch([]timer.Handle{other}, starts))
	require.Len(t, hs, n+1)
	require.Equal(t, other, hs[0])
	clk.Advance(5 * time.Second)
	// Handles of timers that have fired, zero ones and one twice are among them.
	hs = append(hs, timer.Handle{}, hs[n])
	require.Equal(t, 1+4*n/10, timer.StopBatch(hs))
	require.Zero(t, timer.StopBatch(hs))
	require.False(t, other.Stop())
	clk.Advance(time.Hour)
	for i, at := range ran {
		if i%10 > 5 {
			require.Zero(t, at, i)
		} else {
			require.Equal(t, 1+time.Duration(i%10)*time.Second, at, i)
		}
	}
	balanced(t, s.Stats())
	require.Zero(t, s.Len())
	require.Zero(t, timer.StopBatch(nil))
}

// Each Handle of a batch is that of its own timer.
func TestBatch_Handles(t *testing.T) {
	s, clk := virtual(t)
	ran := 0
	starts := make([]timer.Start, 300)
	for i := range starts {
		starts[i] = timer.Start{Delay: time.Second, Func: func() { ran += i }}
	}
	hs := must(s.StartBatch(nil, starts))
	for i, h := range hs {
		if i != 7 {
			require.True(t, h.Stop())
		}
	}
	clk.Advance(time.Second)
	require.Equal(t, 7, ran)
}

func TestStartBatch_StopsAtTheFirstError(t *testing.T) {
	for _, shards := range []int{1, 4} {
		s, _ := virtual(t, timer.WithMaxPending(500), timer.WithShards(shards))
		starts := make([]timer.Start, 600)
		for i := range starts {
			starts[i] = timer.Start{Delay: time.Second, Func: func() {}}
		}
		hs, err := s.StartBatch(nil, starts)
		require.ErrorIs(t, err, timer.ErrTooManyPending)
		require.Len(t, hs, 500)
		require.Equal(t, 500, s.Len())
		require.Equal(t, 500, timer.StopBatch(hs))
		s.Close()
		hs, err = s.StartBatch(nil, starts)
		require.ErrorIs(t, err, timer.ErrClosed)
		require.Empty(t, hs)
		require.PanicsWithValue(t, "timer: StartBatch with a nil func", func() { s.StartBatch(nil, make([]timer.Start, 1)) })
	}
}

func BenchmarkStartStopBatch(b *testing.B) {
	const n = 256
	s := timer.New()
	defer s.Close()
	starts := make([]timer.Start, n)
	for i := range starts {
		starts[i] = timer.Start{Delay: time.Hour, Func: func() {}}
	}
	hs := make([]timer.Handle, 0, n)
	perTimer := func(b *testing.B) { b.ReportMetric(float64(b.Elapsed())/float64(b.N*n), "ns/timer") }
	b.Run("one by one", func(b *testing.B) {
		for b.Loop() {
			hs = hs[:0]
			for _, st := range starts {
				h, _ := s.Start(st.Delay, st.Func)
				hs = append(hs, h)
			}
			for _, h := range hs {
				h.Stop()
			}
		}
		perTimer(b)
	})
	b.Run("batch", func(b *testing.B) {
		for b.Loop() {
			hs, _ = s.StartBatch(hs[:0], starts)
			timer.StopBatch(hs)
		}
		perTimer(b)
	})
}
