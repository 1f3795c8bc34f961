package executor_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/executor"
)

// blockers submits n callbacks that block until release is closed.
func blockers(t *testing.T, p *executor.Pool, n int) (release chan struct{}) {
	release = make(chan struct{})
	_, err := p.SubmitBatch(slices.Repeat([]func(){func() { <-release }}, n))
	require.NoError(t, err)
	return release
}

func TestWatchdog_AWorkerForEachWhileCallbacksBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(2))
		began := time.Now()
		release := blockers(t, p, 1000)
		var waited time.Duration
		require.NoError(t, p.Submit(func() { waited = time.Since(began) }))

		for _, want := range []int{2, 1000} {
			synctest.Wait()
			s := p.Stats()
			require.Equal(t, want, s.Running)
			conserve(t, s, 1001)
			time.Sleep(time.Millisecond)
		}
		require.Equal(t, time.Millisecond, waited, "the next callback, behind 1,000 blocked ones")
		require.Equal(t, 1001, p.Stats().PeakWorkers, "never more than one worker for each callback")

		close(release)
		synctest.Wait()
		require.Zero(t, p.Stats().Workers, "workers end as soon as no callback is blocked")
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// While 1,000 callbacks block, each new callback starts immediately.
func TestWatchdog_NextCallbackBehindBlockedOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(2))
		release := blockers(t, p, 1000)
		time.Sleep(time.Second)
		for range 100 {
			began := time.Now()
			var waits [2]time.Duration
			for i := range waits {
				require.NoError(t, p.Submit(func() { waits[i] = time.Since(began) }))
			}
			time.Sleep(time.Millisecond + time.Nanosecond)
			synctest.Wait()
			require.Equal(t, [2]time.Duration{}, waits)
			require.Equal(t, 1000, p.Stats().Workers, "and they end")
		}
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// The watchdog also starts more workers for callbacks that block for less than its
// interval of a millisecond.
func TestWatchdog_ShortBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(2))
		began := time.Now()
		_, err := p.SubmitBatch(slices.Repeat([]func(){func() { time.Sleep(900 * time.Microsecond) }}, 1000))
		require.NoError(t, err)
		require.NoError(t, p.Shutdown(t.Context()))
		require.Less(t, time.Since(began), 6*time.Millisecond) // 450 ms with only the first two workers
	})
}

// One worker is fast enough here. At each check a callback waits, but never one that
// waited at the check before.
func TestWatchdog_LeavesAWorkerThatKeepsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes, ahead = 950 * time.Microsecond, 300 * time.Microsecond
		p := executor.NewPool(executor.WithWorkers(1))
		for i := range 100 {
			require.NoError(t, p.Submit(func() { time.Sleep(takes) }))
			if i == 0 {
				time.Sleep(takes - ahead)
			} else {
				time.Sleep(takes)
			}
		}
		require.NoError(t, p.Shutdown(t.Context()))
		require.Equal(t, 1, p.Stats().PeakWorkers)
	})
}

// While callbacks that block for 0.9 ms wait, the pool keeps its 100 workers.
func TestWatchdog_LastingBacklogOfShortBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(2), executor.WithMaxWorkers(100))
		began := time.Now()
		_, err := p.SubmitBatch(slices.Repeat([]func(){func() { time.Sleep(900 * time.Microsecond) }}, 10_000))
		require.NoError(t, err)
		require.NoError(t, p.Shutdown(t.Context()))
		require.Less(t, time.Since(began), 100*time.Millisecond) // 90 ms with 100 workers from the start
	})
}

func TestWatchdog_StopsAtTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(2), executor.WithMaxWorkers(50))
		release := blockers(t, p, 1000)
		time.Sleep(time.Second)
		require.Equal(t, 50, p.Stats().Workers)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
		require.Equal(t, 50, p.Stats().PeakWorkers)
	})
}

// The watchdog does not check while all allowed workers block, even if callbacks wait.
func TestWatchdog_RestsAtTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(2), executor.WithMaxWorkers(5))
		release := blockers(t, p, 10)
		time.Sleep(100 * 365 * 24 * time.Hour)
		require.Equal(t, 5, p.Stats().Running)
		close(release)
		synctest.Wait()
		release = blockers(t, p, 10) // again ten callbacks
		time.Sleep(time.Second)
		require.Equal(t, 5, p.Stats().Running)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// The watchdog does not check while no callback waits. Otherwise the test, whose bubble
// advances by a century, would take very long.
func TestWatchdog_RestsWhenNothingWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(2))
		release := blockers(t, p, 10)
		time.Sleep(100 * 365 * 24 * time.Hour)
		require.Equal(t, 10, p.Stats().Running)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// After many callbacks have blocked, the number of workers falls to the base.
func TestWatchdog_BackToTheBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(2))
		close(blockers(t, p, 1000))
		time.Sleep(time.Second)
		release := blockers(t, p, 500)
		time.Sleep(time.Second)
		require.Equal(t, 500, p.Stats().Running)
		close(release)
		synctest.Wait()
		release = blockers(t, p, 500)
		synctest.Wait()
		require.Equal(t, 2, p.Stats().Workers)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// The watchdog adds no workers for short callbacks, however many wait.
func TestWatchdog_LeavesShortCallbacksToTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(1))
		_, err := p.SubmitBatch(slices.Repeat([]func(){func() { time.Sleep(50 * time.Microsecond) }}, 1000))
		require.NoError(t, err)
		require.NoError(t, p.Shutdown(t.Context()))
		require.Equal(t, 1, p.Stats().PeakWorkers)
	})
}
