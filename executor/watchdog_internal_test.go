package executor

import (
	"slices"
	"sync"
	"sync/atomic"
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

// submitUnbegun submits fs, and returns how many workers it has counted in: they begin
// when spawn starts them.
func submitUnbegun(p *Pool, fs []func()) (workers int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.pushAll(fs)
	p.submitted += uint64(len(fs))
	return p.startLocked()
}

// Workers that have been started and have not got to run mean that the
// processors are busy: more of them would not help.
func TestWatchdog_WaitsForWorkersToGetToRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(WithWorkers(2))
		n := submitUnbegun(p, slices.Repeat([]func(){func() {}}, 10))
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

// While workers that were started wait for a processor the watchdog checks seldom, and
// as often as ever from the moment when all of them have one.
func TestWatchdog_ChecksSeldomWhileWorkersHaveYetToBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checks atomic.Int32
		p := NewPool(WithWorkers(2))
		callback.OnCheck(p, func() { checks.Add(1) })
		release := make(chan struct{})
		n := submitUnbegun(p, slices.Repeat([]func(){func() { <-release }}, 100))
		for _, c := range []struct {
			after time.Duration
			want  int32
		}{{watchEvery, 1}, {watchSeldom - 1, 1}, {1, 2}, {watchSeldom - 1, 2}} {
			time.Sleep(c.after)
			synctest.Wait()
			require.Equal(t, c.want, checks.Load())
		}
		p.spawn(n)
		synctest.Wait()
		time.Sleep(watchEvery - 1)
		synctest.Wait()
		require.Equal(t, int32(2), checks.Load(), "the one that would have been next was put off")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, int32(3), checks.Load())
		require.Equal(t, 2*growth, p.Stats().Workers, "and it knows that the two are held up")
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// A Share that is made while checks are seldom is looked after like any other.
func TestWatchdog_ChecksSoonWhileThereIsAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(WithWorkers(1))
		release := make(chan struct{})
		wait := func() { <-release }
		n := submitUnbegun(p, []func(){wait, wait, wait})
		time.Sleep(watchEvery + 1) // from now on checks are seldom
		synctest.Wait()
		s, _, err := p.Share([]func(){wait, wait})
		require.NoError(t, err)
		go s.Run()
		time.Sleep(watchEvery + 1)
		synctest.Wait()
		require.Equal(t, 4, p.queue.len(), "the second is with the others")
		p.spawn(n)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// A check that was on its way when the timer was set again comes too soon to tell
// whether anything is held up, or takes long.
func TestWatchdog_ACheckTooSoonSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(WithWorkers(2))
		release := make(chan struct{})
		_, err := p.SubmitBatch(slices.Repeat([]func(){func() { <-release }}, 100))
		require.NoError(t, err)
		synctest.Wait()
		p.tick()
		require.Equal(t, 2, p.Stats().Workers)
		require.False(t, p.yields.Load())
		time.Sleep(watchEvery)
		synctest.Wait()
		require.Equal(t, 2*growth, p.Stats().Workers)
		require.True(t, p.yields.Load())
		p.tick()
		require.Equal(t, 2*growth, p.Stats().Workers)
		require.True(t, p.yields.Load())
		close(release)
		synctest.Wait()
		time.Sleep(watchEvery)
		synctest.Wait()
		require.False(t, p.yields.Load(), "nothing waits any more")
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// A worker that ends as surplus does not raise the number of those that may be started.
func TestPool_SurplusDoesNotRaiseTheLimit(t *testing.T) {
	p := NewPool(WithWorkers(1))
	var limit int
	err := p.Submit(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		// As after a late check, beside four that are held up, when 2 was the limit.
		p.watch.lap++
		p.watch.busy, p.watch.comers = true, 1
		p.workers += 4
		p.limit = 2
	})
	require.NoError(t, err)
	for ended := false; !ended; time.Sleep(time.Microsecond) {
		p.mu.Lock()
		if ended = p.workers == 4; ended {
			limit = p.limit
			p.workers = 0
		}
		p.mu.Unlock()
	}
	require.Equal(t, 2, limit)
	require.NoError(t, p.Shutdown(t.Context()))
}

// After each check the watchdog does for others what they ask it to.
func TestWatchdog_OnCheckAndOnCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks, crowds := 0, 0
		p := NewPool(WithWorkers(1))
		callback.OnCheck(p, func() { checks++ })
		callback.OnCrowd(p, func() {
			crowds++
			require.Equal(t, 1, p.Stats().Running, "before the workers are started")
		})
		release := make(chan struct{})
		_, err := p.SubmitBatch(slices.Repeat([]func(){func() { <-release }}, 10))
		require.NoError(t, err)
		time.Sleep(watchEvery + 1)
		synctest.Wait()
		require.Equal(t, 1, checks)
		require.Equal(t, 1, crowds)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// A few callbacks that block crowd nobody: the process's alarm need not set backups, and may
// go on to be exact.
func TestWatchdog_FewCrowdNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(WithWorkers(2))
		var checks atomic.Int32
		callback.OnCheck(p, func() { checks.Add(1) })
		callback.OnCrowd(p, func() { t.Error("nobody waits for a proc") })
		s, _, err := p.Share(slices.Repeat([]func(){func() { time.Sleep(5 * watchEvery) }}, 2))
		require.NoError(t, err)
		s.Run()
		require.NoError(t, p.Shutdown(t.Context()))
		require.Positive(t, checks.Load())
	})
}

// Workers that were started and wait for a proc crowd it at every check, not only when they
// are started.
func TestWatchdog_WorkersThatHaveYetToBeginAreACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(WithWorkers(1))
		p.limit = 10
		var crowds atomic.Int32
		callback.OnCrowd(p, func() { crowds.Add(1) })
		n := submitUnbegun(p, slices.Repeat([]func(){func() {}}, 100))
		require.Equal(t, 10, n)
		time.Sleep(watchEvery + watchSeldom)
		synctest.Wait()
		require.Equal(t, int32(2), crowds.Load())
		p.spawn(n)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// However long a check takes to start workers, the next comes after watchEvery from there:
// what OnCheck does has the front of the run queue until then.
func TestWatchdog_ChecksAfterTheWorkersAreStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var looks, checks []time.Time
		note := func(moments *[]time.Time) {
			mu.Lock()
			defer mu.Unlock()
			*moments = append(*moments, time.Now())
		}
		p := NewPool(WithWorkers(1))
		callback.OnCheck(p, func() { note(&checks) })
		callback.OnCrowd(p, func() {
			note(&looks)
			time.Sleep(watchEvery * 9 / 10) // as to start thousands may take
		})
		release := make(chan struct{})
		_, err := p.SubmitBatch(slices.Repeat([]func(){func() { <-release }}, 10))
		require.NoError(t, err)
		time.Sleep(10 * watchEvery)
		synctest.Wait()
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, looks, 2, "seven workers more than the one, then two more for the two that wait")
		require.GreaterOrEqual(t, looks[1].Sub(checks[0]), watchEvery)
	})
}

// While callbacks end, the workers at the bound are not stuck: the watchdog has to find out
// which of them are surplus.
func TestWatchdog_GoesOnAtTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(WithWorkers(1), WithMaxWorkers(2))
		_, err := p.SubmitBatch(slices.Repeat([]func(){func() { time.Sleep(watchEvery / 3) }}, 100))
		require.NoError(t, err)
		time.Sleep(10*watchEvery + 1)
		synctest.Wait()
		require.Equal(t, 2, p.Stats().Workers)
		p.mu.Lock()
		require.True(t, p.watch.armed)
		p.mu.Unlock()
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
