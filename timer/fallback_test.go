package timer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// full returns a Scheduler that has no room for another timer.
func full(t *testing.T, opts ...timer.Option) (s *timer.Scheduler, filler timer.Handle) {
	s = timer.New(append([]timer.Option{timer.WithMaxPending(1)}, opts...)...)
	return s, start(t, s, 10_000*time.Hour, func() {})
}

// What cannot report that there is no room falls back: a timeout that never came
// would be worst just then.
func TestFallback_EverythingFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, filler := full(t)
		begin := time.Now()
		require.Equal(t, begin.Add(time.Second), <-s.After(time.Second))
		tm := s.NewTimer(time.Second)
		require.Equal(t, begin.Add(2*time.Second), <-tm.C)
		ran := make(chan time.Time, 1)
		f := s.AfterFunc(time.Second, func() { ran <- time.Now() })
		require.Equal(t, begin.Add(3*time.Second), <-ran)
		s.Sleep(time.Second)
		require.Equal(t, 4*time.Second, time.Since(begin))
		tk := s.NewTicker(time.Second)
		for i := range 3 {
			require.Equal(t, begin.Add(time.Duration(5+i)*time.Second), <-tk.C)
		}
		time.Sleep(2500 * time.Millisecond) // a slow reader
		require.Equal(t, begin.Add(8*time.Second), <-tk.C)
		require.Equal(t, begin.Add(10*time.Second), <-tk.C, "in phase")
		tk.Stop()
		time.Sleep(time.Minute)
		require.False(t, tm.Stop())
		require.False(t, f.Stop())

		st := s.Stats()
		require.EqualValues(t, 5, st.FellBack)
		require.Zero(t, st.Rejected)
		require.Equal(t, 1, st.Pending, "they are not among these")
		_, err := s.Start(time.Second, func() {})
		require.ErrorIs(t, err, timer.ErrTooManyPending, "Start can report it")
		_, err = s.Every(time.Second, func() {})
		require.ErrorIs(t, err, timer.ErrTooManyPending)
		_, err = s.Repeat(everySecond, func() {})
		require.ErrorIs(t, err, timer.ErrTooManyPending)
		require.ErrorIs(t, timer.NewKeyed(s, func(int, int) {}).Set(1, 1, time.Second), timer.ErrTooManyPending)
		require.EqualValues(t, 4, s.Stats().Rejected)
		require.True(t, filler.Stop())
		balanced(t, s.Stats())
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

// One that fell back is stopped and reset as any other, and has room when there is
// some.
func TestFallback_StopAndReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, filler := full(t)
		never := func() { t.Error("ran after a Stop that was true") }
		f := s.AfterFunc(time.Second, never)
		require.True(t, f.Stop())
		require.False(t, f.Stop())
		tm := s.NewTimer(time.Second)
		require.True(t, tm.Stop())
		require.False(t, tm.Reset(time.Second))
		require.True(t, tm.Reset(time.Minute), "later")
		begin := time.Now()
		time.Sleep(time.Second)
		require.Empty(t, tm.C)
		require.True(t, tm.Reset(time.Second), "earlier")
		require.Equal(t, begin.Add(2*time.Second), <-tm.C)
		require.False(t, tm.Reset(time.Second))
		time.Sleep(time.Hour)
		require.True(t, tm.Stop(), "its value was not received")
		require.Empty(t, tm.C)
		require.False(t, tm.Reset(0))
		synctest.Wait()
		require.Len(t, tm.C, 1)
		<-tm.C

		tk := s.NewTicker(time.Hour)
		tk.Reset(time.Second)
		begin = time.Now()
		require.Equal(t, begin.Add(time.Second), <-tk.C)
		tk.Stop()
		time.Sleep(time.Hour)
		require.Empty(t, tk.C)
		tk.Reset(time.Minute)

		require.Equal(t, 1, s.Len())
		require.True(t, filler.Stop())
		tk.Reset(time.Minute)
		require.Equal(t, 1, s.Len(), "there is room now")
		require.True(t, s.AfterFunc(time.Hour, never).Stop())
		tk.Stop()
		balanced(t, s.Stats())
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

func TestFallback_HandedBackByClose(t *testing.T) {
	s, clk := virtual(t, timer.WithMaxPending(1))
	start(t, s, 3*time.Second, func() {})
	ran := 0
	s.AfterFunc(2*time.Second, func() { ran++ })
	f := s.AfterFunc(4*time.Second, func() { ran++ })
	tm := s.NewTimer(time.Second)
	tk := s.NewTicker(5 * time.Second)
	g := s.AfterFunc(6*time.Second, func() { ran++ })
	ps := closeAll(s)
	require.Len(t, ps, 6)
	for i, p := range ps {
		require.Equal(t, epoch.Add(time.Duration(1+i)*time.Second), p.Deadline)
		require.Equal(t, i == 0 || i == 4, p.Func == nil, i)
	}
	ps[1].Func()
	require.Equal(t, 1, ran)
	clk.Advance(time.Hour)
	require.Equal(t, 1, ran, "none fires")
	requireEmpty(t, tm.C, "none fires")
	requireEmpty(t, tk.C, "none fires")
	require.False(t, f.Stop())
	require.False(t, tm.Reset(time.Second))
	require.False(t, g.Stop())
	require.Empty(t, closeAll(s))
	_, set := clk.Next()
	require.False(t, set, "no alarm is left")
	st := s.Stats()
	require.EqualValues(t, 1, st.HandedBack)
	require.EqualValues(t, 5, st.FellBack)
	balanced(t, st)
}

// Nothing of those that are over stays reachable: the memory is that of those that
// wait.
func TestFallback_MemoryFallsAfterwards(t *testing.T) {
	s, _ := virtual(t, timer.WithMaxPending(1))
	start(t, s, time.Hour, func() {})
	ts := make([]*timer.Timer, 100_000)
	before := heap()
	for i := range ts {
		ts[i] = s.AfterFunc(time.Hour, func() {})
	}
	peak := heap() - before
	for i, tm := range ts {
		require.True(t, tm.Stop())
		ts[i] = nil
	}
	require.Less(t, heap()-before, peak/10)
	require.NotEmpty(t, ts)
}
