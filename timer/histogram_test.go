package timer_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

func TestLateness_QuantileIsNotBelowTheTrueOne(t *testing.T) {
	clk := timertest.NewClock(epoch)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()), timer.WithTick(time.Second))
	defer s.Close()
	for _, d := range []time.Duration{100, 200, 900} { // late by 900, 800 and 100 ms
		start(t, s, d*time.Millisecond, func() {})
	}
	clk.Advance(time.Second)
	l := s.Stats().Lateness
	for _, q := range []struct {
		q    float64
		want time.Duration
	}{{0, 100}, {-1, 100}, {math.NaN(), 100}, {0.3, 100}, {0.5, 800}, {0.6, 800}, {0.67, 900}, {0.99, 900}, {1, 900}, {2, 900}} {
		got, want := l.Quantile(q.q), q.want*time.Millisecond
		require.GreaterOrEqual(t, got, want, q.q)
		require.LessOrEqual(t, got, want+want/8, q.q)
	}
}

func TestHistogram_Buckets(t *testing.T) {
	var h timer.Histogram
	for _, d := range []time.Duration{3 * time.Millisecond, -1, 3 * time.Millisecond, 3 * time.Millisecond} {
		h.Record(d)
	}
	var limits []time.Duration
	var counts []uint64
	for limit, n := range h.Buckets() {
		limits, counts = append(limits, limit), append(counts, n)
	}
	require.Equal(t, []uint64{1, 3}, counts)
	require.Zero(t, limits[0], "a negative one counts as zero")
	require.GreaterOrEqual(t, limits[1], 3*time.Millisecond)
	require.LessOrEqual(t, limits[1], 3*time.Millisecond*9/8)
	for range h.Buckets() {
		break
	}
}
