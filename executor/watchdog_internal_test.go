package executor

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/internal/callback"
)

// When the processors are busy, the base's workers go on and the others end;
// who is held up in a callback, or has just begun, does not count.
func TestWatchdog_SurplusEndsWhenProcessorsAreBusy(t *testing.T) {
	const base = 2
	w := watchdog{lap: 1}
	workers := make([]turn, 5)
	begun := turn{lap: 2}
	comes := func() (ended []int) {
		for round := range 3 {
			for i := range workers {
				if w.surplus(&workers[i], base) && round == 0 {
					ended = append(ended, i)
				}
			}
		}
		return ended
	}
	require.Empty(t, comes())
	w.lap, w.comers, w.busy = 2, 0, true
	require.Equal(t, []int{2, 3, 4}, comes())
	require.False(t, w.surplus(&begun, base))
	w.lap, w.comers = 3, 0
	slices.Reverse(workers) // whoever comes first
	require.Equal(t, []int{2, 3, 4}, comes())
	w.lap, w.comers, w.busy = 4, 0, false
	require.Empty(t, comes())
}

// A backlog that lasts, after a hundred callbacks have blocked and come back.
// The checks are made by hand and late, as they come on busy processors: the
// bubble's clock stands still all the while.
func TestPool_SurplusEndsUnderALastingBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(WithWorkers(2))
		release := make(chan struct{})
		step := make(chan struct{})
		fs := slices.Repeat([]func(){func() { <-release }}, 100)
		fs = append(fs, slices.Repeat([]func(){func() { <-step }}, 10_000)...)
		_, err := p.SubmitBatch(fs)
		require.NoError(t, err)
		time.Sleep(2*watchEvery + 1)
		synctest.Wait()
		require.Equal(t, 128, p.Stats().Workers)
		close(release)
		synctest.Wait()
		for checks := 0; p.Stats().Workers > 2; checks++ {
			require.Less(t, checks, 10)
			p.mu.Lock()
			p.watch.at = time.Now().Add(-watchLate)
			p.mu.Unlock()
			for range 256 {
				step <- struct{}{}
			}
			synctest.Wait()
			p.tick()
			workers := p.Stats().Workers
			require.NoError(t, p.Submit(func() { <-step }))
			require.Equal(t, workers, p.Stats().Workers, "none is started in their place")
		}
		require.NotZero(t, p.Stats().Queued)
		close(step)
		require.NoError(t, p.Shutdown(t.Context()))
		require.Equal(t, p.Stats().Submitted, p.Stats().Run)
		require.Equal(t, 128, p.Stats().PeakWorkers)
	})
}

// Workers that have been started and have not got to run mean that the
// processors are busy: more of them would not help.
func TestWatchdog_WaitsForWorkersToGetToRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(WithWorkers(2))
		p.mu.Lock()
		p.queue.pushAll(slices.Repeat([]func(){func() {}}, 10))
		p.submitted += 10
		n := p.startLocked()
		p.mu.Unlock()
		p.tick()
		require.Equal(t, 2, p.Stats().Workers)
		p.spawn(n)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// On processors that others keep busy the checks come late, and callbacks that
// block must still not hold up the rest.
func TestWatchdog_LateButStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(WithWorkers(2))
		release := make(chan struct{})
		_, err := p.SubmitBatch(slices.Repeat([]func(){func() { <-release }}, 100))
		require.NoError(t, err)
		synctest.Wait()
		p.mu.Lock()
		p.watch.at = time.Now().Add(-time.Second)
		p.mu.Unlock()
		p.tick()
		require.Equal(t, 100, p.Stats().Workers)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// Where processors are busy with callbacks that take long, a few of which have ended,
// the others must not wait for all of them; where callbacks are short, they do not
// wait long.
func TestWatchdog_LateAndSlow(t *testing.T) {
	for name, c := range map[string]struct{ ended, workers int }{
		"long":  {99, 901},
		"short": {101, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewPool(WithWorkers(2))
				step := make(chan struct{})
				_, err := p.SubmitBatch(slices.Repeat([]func(){func() { <-step }}, 1000))
				require.NoError(t, err)
				synctest.Wait()
				for range c.ended {
					step <- struct{}{}
				}
				synctest.Wait()
				p.mu.Lock()
				p.watch.at = time.Now().Add(-100 * slowCallback)
				p.mu.Unlock()
				p.tick()
				require.Equal(t, c.workers, p.Stats().Workers)
				close(step)
				require.NoError(t, p.Shutdown(t.Context()))
			})
		})
	}
}

// After each check the watchdog does for others what they ask it to.
func TestWatchdog_OnLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := 0
		p := NewPool(WithWorkers(1))
		callback.OnCheck(p, func() { checks++ })
		release := make(chan struct{})
		_, err := p.SubmitBatch(slices.Repeat([]func(){func() { <-release }}, 10))
		require.NoError(t, err)
		time.Sleep(watchEvery + 1)
		synctest.Wait()
		require.Equal(t, 1, checks)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestWatchdog_StopsAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(WithWorkers(1))
		_, err := p.SubmitBatch(slices.Repeat([]func(){func() {}}, 10))
		require.NoError(t, err)
		require.NoError(t, p.Shutdown(t.Context()))
		require.False(t, p.watch.timer.Stop(), "it was not set any more")
	})
}

// Those that came first in a lap may have ended when the queue was empty. The last
// workers are then no surplus, however late they come: there would be none.
func TestPool_TheLastWorkersStay(t *testing.T) {
	p := NewPool(WithWorkers(2))
	ran := make(chan struct{})
	err := p.Submit(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		// As after a late check, and after two others have come and gone.
		p.watch.lap++
		p.watch.busy, p.watch.comers = true, 2
		p.queue.push(func() { close(ran) })
		p.submitted++
	})
	require.NoError(t, err)
	<-ran
	require.NoError(t, p.Shutdown(t.Context()))
}

// A check that finds callbacks and no worker at all starts some.
func TestPool_TickStartsTheFirstWorker(t *testing.T) {
	p := NewPool(WithWorkers(2))
	ran := make(chan struct{})
	p.mu.Lock()
	p.queue.push(func() { close(ran) })
	p.submitted++
	p.watch.armed = true
	p.watch.check(p)
	p.mu.Unlock()
	<-ran // the watchdog checks within milliseconds
	require.NoError(t, p.Shutdown(t.Context()))
}
