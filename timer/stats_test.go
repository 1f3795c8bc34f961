package timer_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// Counters do not fall, not even for a moment, when contexts find no room or are pending
// at Close.
func TestStats_CountersDoNotFall(t *testing.T) {
	fell := func(s *timer.Scheduler, while func()) {
		var over atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for last := s.Stats(); !over.Load(); {
				st := s.Stats()
				if st.Rejected < last.Rejected || st.RejectedFull < last.RejectedFull ||
					st.HandedBack < last.HandedBack || st.FellBack < last.FellBack || st.Started < last.Started {
					t.Errorf("from %+v\nto %+v", last, st)
					return
				}
				last = st
			}
		})
		while()
		over.Store(true)
		wg.Wait()
	}
	wait := func(s *timer.Scheduler) (cancel func()) {
		ctx, cancel := s.WithTimeout(context.Background(), time.Hour)
		ctx.Done()
		return cancel
	}
	refused := func(s *timer.Scheduler) uint64 {
		var n atomic.Uint64
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); n.Add(1) {
					wait(s)()
				}
			})
		}
		wg.Wait()
		return n.Load()
	}

	var n uint64
	s := timer.New()
	const pending = 20_000
	for range pending {
		defer wait(s)()
	}
	_, err := s.Start(time.Hour, func() {})
	require.NoError(t, err)
	fell(s, func() {
		s.Close()
		n = refused(s)
	})
	st := s.Stats()
	require.Equal(t, []uint64{0, 1, pending + n, pending + n + 1}, []uint64{st.Rejected, st.HandedBack, st.FellBack, st.Started})
}

func TestStats_ExecutorAndRefused(t *testing.T) {
	clk := timertest.NewClock(time.Unix(1e9, 0))
	s := timer.New(timer.WithClock(clk), timer.WithMaxPending(2))
	for range 5 {
		_, _ = s.Start(time.Second, describedCallback)
	}
	clk.Advance(time.Second)
	require.NoError(t, s.Close())
	_, err := s.Start(time.Second, describedCallback)
	require.ErrorIs(t, err, timer.ErrClosed)
	st := s.Stats()
	require.EqualValues(t, 4, st.Rejected)
	require.EqualValues(t, 3, st.RejectedFull)
	require.EqualValues(t, 2, st.Executor.Run)
}
