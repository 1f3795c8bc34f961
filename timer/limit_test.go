package timer_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// A timer is refused only if as many as allowed are pending, however they are
// spread over the shards.
func TestScheduler_MaxPendingRefusesNoneTooMany(t *testing.T) {
	const limit, standing, goroutines, each = 1000, 900, 8, 10
	s := timer.New(timer.WithMaxPending(limit), timer.WithShards(4))
	defer s.Close()
	for range standing {
		start(t, s, time.Hour, func() {})
	}
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			var hs [each]timer.Handle
			for range 2000 {
				for i := range hs {
					h, err := s.Start(time.Hour, func() {})
					if err != nil {
						t.Errorf("%v, with %d pending at most", err, standing+goroutines*each)
						return
					}
					hs[i] = h
				}
				for _, h := range hs {
					h.Stop()
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, standing, s.Len())
	for range limit - standing {
		start(t, s, time.Hour, func() {})
	}
	_, err := s.Start(time.Hour, func() {})
	require.ErrorIs(t, err, timer.ErrTooManyPending)
}
