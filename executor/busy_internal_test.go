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
)

// Where callbacks take long, other goroutines run between them, and not just when Go's
// scheduler interrupts a worker, which it does every 10 ms.
func TestPool_YieldsBetweenCallbacksThatTakeLong(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := NewPool(WithWorkers(1), WithMaxWorkers(1)) // without a watchdog, which starts others
	p.yields.Store(true)
	var stop atomic.Bool
	var turns int // on the only proc, of which a goroutine that computes is deprived
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
			for begin := time.Now(); time.Since(begin) < 3*slowCallback; {
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
	require.False(t, p.yields.Load())
}

// Where callbacks take long, one that does not is no reason to yield.
func TestPool_DoesNotYieldAfterAShortCallback(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) { // where nothing that computes takes any time
		p := NewPool(WithWorkers(1), WithMaxWorkers(1)) // without a watchdog, so that yields stays
		p.yields.Store(true)
		var stop atomic.Bool
		turns := 0 // on the only proc, when the worker yields
		const n = 800
		fs := make([]func(), n)
		for i := range fs {
			fs[i] = func() {
				if i == n-1 {
					stop.Store(true)
				}
			}
		}
		_, err := p.SubmitBatch(fs)
		require.NoError(t, err)
		for !stop.Load() {
			turns++
			runtime.Gosched()
		}
		require.Less(t, turns, n/8)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// The goroutine of a Share behind which nothing waits leaves nothing for the watchdog.
func TestShare_EndsWhatTheWatchdogHasSeen(t *testing.T) {
	p := NewPool(WithWorkers(1))
	s, n, err := p.Share([]func(){func() { p.yields.Store(true) }, func() {}})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	s.Run()
	require.False(t, p.yields.Load())
	require.NoError(t, p.Shutdown(t.Context()))
}

// Where a worker that was started waits for a processor behind others, the goroutine of a
// Share that ends leaves its own to another worker.
func TestShare_StartsAWorkerInPlaceOfOneThatHasYetToBegin(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	// Go's scheduler may take the proc away in between, and the worker is not late then:
	// hence several attempts, of which none would do without the other worker.
	served := func() (before bool) {
		p := NewPool(WithWorkers(1))
		const crowd = 100
		var ran, own, foreign atomic.Int32
		var wg sync.WaitGroup
		others := func(n int) {
			for range n {
				wg.Go(func() { ran.Inc() })
			}
		}
		others(crowd)
		_, err := p.SubmitBatch([]func(){func() { foreign.Inc() }, func() { before = ran.Load() == 0 }})
		require.NoError(t, err)
		others(1) // a proc runs the goroutine that was made last first: it is not the worker
		s, n, err := p.Share([]func(){func() { own.Inc() }, func() { own.Inc() }})
		require.NoError(t, err)
		require.Equal(t, 2, n)
		s.Run()
		require.EqualValues(t, 2, own.Load())
		wg.Wait()
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 4, p.Stats().Run)
		require.LessOrEqual(t, p.Stats().PeakWorkers, 2)
		require.EqualValues(t, 1, foreign.Load())
		return before
	}
	for attempts := 0; !served(); attempts++ {
		require.Less(t, attempts, 20)
	}
}

// Who waits for the end of a Share does not wait for callbacks of others.
func TestShare_EndsBesideOthersThatBlock(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := NewPool(WithWorkers(1))
	release := make(chan struct{})
	require.NoError(t, p.Submit(func() { <-release })) // its worker waits for this proc
	s, _, err := p.Share([]func(){nop})
	require.NoError(t, err)
	s.Run()
	close(release)
	require.NoError(t, p.Shutdown(t.Context()))
}

// The peak is of all goroutines that run callbacks.
func TestShare_CountsForThePeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(WithWorkers(1))
		release := make(chan struct{})
		wait := func() { <-release }
		s, _, err := p.Share([]func(){wait})
		require.NoError(t, err)
		go s.Run()
		require.NoError(t, p.Submit(wait))
		synctest.Wait()
		require.Equal(t, 2, p.Stats().Workers)
		require.Equal(t, 2, p.Stats().PeakWorkers)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// Workers of which there may be no more keep their time slices.
func TestPool_ABoundedOneDoesNotYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for most, want := range map[int]bool{100: false, unbounded: true} {
			p := NewPool(WithWorkers(1), WithMaxWorkers(most))
			release := make(chan struct{})
			_, err := p.SubmitBatch(slices.Repeat([]func(){func() { <-release }}, 200))
			require.NoError(t, err)
			time.Sleep(watchEvery + 1)
			synctest.Wait()
			require.Equal(t, growth, p.Stats().Workers)
			require.Equal(t, want, p.yields.Load())
			close(release)
			require.NoError(t, p.Shutdown(t.Context()))
		}
	})
}
