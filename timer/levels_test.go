package timer_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// A Scheduler of a bubble may be read outside, where it is some 26 years later. What reads
// it does not tell it that time.
func TestReaders_OutsideABubbleMoveNoTime(t *testing.T) {
	given, read := make(chan *timer.Scheduler), make(chan struct{})
	go func() {
		for s := range given {
			s.Levels()
			s.Forecast(time.Second, time.Hour)
			s.SamplePending(1)
			for range s.PendingTimers() {
			}
			s.Stats()
			read <- struct{}{}
		}
	}()
	defer close(given)
	synctest.Test(t, func(t *testing.T) {
		s := timer.New(timer.WithShards(1))
		defer s.Close()
		fired := make(chan time.Time, 1)
		for range 3 { // the wheel is empty from the second time on
			given <- s
			<-read
			begin := time.Now()
			s.AfterFunc(time.Second, func() { fired <- time.Now() })
			given <- s
			<-read
			require.GreaterOrEqual(t, (<-fired).Sub(begin), time.Second)
		}
		require.NotEmpty(t, s.Levels())
	})
}

// Few timers beside many count as much as they should, wherever they are.
func TestForecast_FewBesideMany(t *testing.T) {
	s, _ := virtual(t, timer.WithShards(4))
	for range 20_000 {
		start(t, s, time.Hour, func() {})
	}
	sum, rounds := 0, 300
	k := timer.NewKeyed[int, int](s, func(int, int) {})
	const keys = 64
	for i := range keys {
		require.NoError(t, k.Set(i, i, 30*time.Second))
	}
	for range rounds {
		sum += s.Forecast(time.Minute)[0].Timers
	}
	// The standard error of one is 25, of the mean 1.5.
	require.InDelta(t, keys, float64(sum)/float64(rounds), 15)
}

// A sample is as large as was asked for, and has no timer twice where it is most of them.
func TestSamplePending_Sizes(t *testing.T) {
	s, _ := virtual(t, timer.WithShards(4))
	for i := range 14 {
		start(t, s, time.Hour+time.Duration(i)*time.Minute, func() {})
	}
	for range 200 {
		for _, n := range []int{1, 3, 13, 14, 20} {
			due := map[time.Time]bool{}
			got := s.SamplePending(n)
			require.Len(t, got, min(n, 14))
			for _, p := range got {
				due[p.Due] = true
			}
			if n >= 13 {
				require.Len(t, due, min(n, 14))
			}
		}
	}
	for range 3000 {
		start(t, s, time.Duration(rand.Int64N(int64(time.Hour))), func() {})
	}
	require.Len(t, s.SamplePending(100), 100)
	require.Len(t, s.SamplePending(3000), 3000)
}
