package latch

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestLatch_Wait(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	synctest.Test(t, func(t *testing.T) {
		var l Latch
		require.NoError(t, l.Wait(ended), "nothing is under way")
		l.Add(2)
		require.ErrorIs(t, l.Wait(ended), context.Canceled)

		var waited atomic.Int32
		for range 3 {
			go func() {
				require.NoError(t, l.Wait(t.Context()))
				waited.Add(1)
			}()
			synctest.Wait()
		}
		l.Add(-1)
		synctest.Wait()
		require.Zero(t, waited.Load())
		l.Add(-1)
		synctest.Wait()
		require.EqualValues(t, 3, waited.Load())

		l.Add(1)
		require.ErrorIs(t, l.Wait(ended), context.Canceled, "it can be used again")
		l.Add(-1)
	})
}

func TestAwait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	cancel()
	require.ErrorIs(t, Await(ctx, done), context.Canceled)
	close(done)
	for range 100 {
		require.NoError(t, Await(ctx, done), "if nothing is running, a context that has ended does not matter")
	}
}
