package timer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

// An executor that blocks its submitter is felt by who starts timers: what waits for
// it, due by its time or at once, takes room.
func TestMaxPending_BoundsWhatWaitsForAnExecutorThatBlocks(t *testing.T) {
	for name, d := range map[string]time.Duration{"by its time": time.Millisecond, "at once": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const limit = 100
				pool := executor.NewPool(executor.WithMaxWorkers(1), executor.WithQueue(1))
				s := timer.New(timer.WithExecutor(pool), timer.WithMaxPending(limit))
				k := timer.NewKeyed(s, func(int, int) {})
				unblock := make(chan struct{})
				ran := atomic.NewInt64(0)
				f := func() { <-unblock; ran.Inc() }
				accepted := int64(0)
				for i := range 1000 {
					if _, err := s.Start(d, f); err == nil {
						accepted++
					} else {
						require.ErrorIs(t, err, timer.ErrTooManyPending)
					}
					if i%50 == 0 {
						time.Sleep(10 * time.Millisecond)
					}
					st := s.Stats()
					require.LessOrEqual(t, st.Pending+st.Queued, limit)
				}
				time.Sleep(time.Second)
				st := s.Stats()
				require.Zero(t, st.Pending)
				require.GreaterOrEqual(t, st.Queued, limit-3)
				require.GreaterOrEqual(t, accepted, int64(limit))
				require.LessOrEqual(t, accepted, int64(limit+3), "one runs, one is in the pool's queue, one on its way")
				require.ErrorIs(t, k.Set(1, 1, time.Second), timer.ErrTooManyPending)
				// What falls back takes no room, and gives none back.
				s.AfterFunc(time.Millisecond, f)
				s.AfterFunc(0, f)
				time.Sleep(time.Second)
				require.ErrorIs(t, k.Set(1, 1, time.Second), timer.ErrTooManyPending)
				close(unblock)
				time.Sleep(time.Second)
				require.Equal(t, accepted+2, ran.Load())
				require.Zero(t, s.Stats().Queued)
				for range limit {
					start(t, s, time.Hour, func() {})
				}
				_, err := s.Start(time.Hour, func() {})
				require.ErrorIs(t, err, timer.ErrTooManyPending)
				balanced(t, s.Stats())
				require.NoError(t, s.Shutdown(t.Context()))
				require.NoError(t, pool.Shutdown(t.Context()))
			})
		})
	}
}
