package executor

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/internal/share"
)

// Workers yield between callbacks that take long. Otherwise other goroutines would run
// only every 10 ms, when Go's scheduler preempts the worker.
func TestPool_YieldsBetweenCallbacksThatTakeLong(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := NewPool(WithWorkers(1), WithMaxWorkers(1)) // without a watchdog, which would start other workers
	p.mustYield.Store(true)
	var stop atomic.Bool
	var turns int // how often another goroutine runs on the only proc
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			turns++
			runtime.Gosched()
		}
	})
	const n = 800
	fs := make([]func(), n)
	for i := range fs {
		fs[i] = func() {
			for begin := time.Now(); time.Since(begin) < 3*slowCallbackTime; {
			}
			if i == n-1 {
				stop.Store(true)
			}
		}
	}
	_, err := p.SubmitBatch(fs)
	require.NoError(t, err)
	wg.Wait()
	require.GreaterOrEqual(t, turns, n/8)
	require.NoError(t, p.Shutdown(t.Context()))
}

// The pool tells when callbacks wait behind others that take long. It does not when its
// workers keep up.
func TestPool_TellsThatCallbacksTakeLong(t *testing.T) {
	told := 0
	old := share.CallbacksTakeLong
	share.CallbacksTakeLong = func() { told++ }
	defer func() { share.CallbacksTakeLong = old }()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(WithWorkers(1))
		for range 10 {
			_, err := p.SubmitBatch(slices.Repeat([]func(){func() {}}, 200))
			require.NoError(t, err)
			time.Sleep(checkInterval + 1)
		}
		synctest.Wait()
		require.Zero(t, told)
		_, err := p.SubmitBatch(slices.Repeat([]func(){func() { time.Sleep(time.Second) }}, 2))
		require.NoError(t, err)
		time.Sleep(checkInterval + 1)
		synctest.Wait()
		require.Equal(t, 1, told)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// Workers of a bounded pool do not yield.
func TestPool_ABoundedOneDoesNotYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for limit, want := range map[int]bool{100: false, noLimit: true} {
			p := NewPool(WithWorkers(1), WithMaxWorkers(limit))
			release := make(chan struct{})
			_, err := p.SubmitBatch(slices.Repeat([]func(){func() { <-release }}, 200))
			require.NoError(t, err)
			time.Sleep(checkInterval + 1)
			synctest.Wait()
			require.Equal(t, min(200, limit), p.Stats().Workers)
			require.Equal(t, want, p.mustYield.Load())
			close(release)
			require.NoError(t, p.Shutdown(t.Context()))
		}
	})
}

// A goroutine that calls Share with a few callbacks runs them without yielding, even if
// other goroutines are ready to run.
func TestPool_FewCallbacksKeepTheirPlace(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := NewPool()
	p.mustYield.Store(true)
	var before []int32 // how many of the goroutines have run, on the only proc
	for range 100 {    // on a busy machine the runtime may preempt the test
		var ready atomic.Int32
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { ready.Inc() })
		}
		before = nil
		w, err := share.PoolOf(p).Share(slices.Repeat([]func(){func() { before = append(before, ready.Load()) }}, maxWithoutYield), 0)
		require.NoError(t, err)
		w.Run()
		wg.Wait()
		if slices.Max(before) == 0 {
			break
		}
	}
	require.Equal(t, make([]int32, maxWithoutYield), before)
	require.NoError(t, p.Shutdown(t.Context()))
}

// Callbacks that wait for a worker without a processor do not make other workers yield: beside
// goroutines that compute, each yield takes 10 ms for each of them.
func TestPool_AWorkerThatHasNotBegunIsNoSlowCallback(t *testing.T) {
	p := NewPool(WithWorkers(1))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.submittedCount, p.workerCount, p.startingWorkers = 2, 1, 1
	p.queue.pushCallbacks([]func(){func() {}})
	p.watchdog.timerSetAt = time.Now().Add(-time.Second)
	p.checkLocked()
	require.False(t, p.mustYield.Load(), "the worker waits for a processor")
	p.startingWorkers = 0
	p.checkLocked()
	require.True(t, p.mustYield.Load(), "the worker runs a callback for a second")
}
