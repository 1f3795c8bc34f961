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

// Also after the first one that a worker runs: on one proc, thousands that begin then look
// for timers after each callback, and not after every second one. Once in 61 times Go's
// scheduler hands the proc back to whoever has just yielded, so most of several count.
func TestPool_YieldsAfterTheFirstCallback(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const rounds = 9
	yielded := 0
	for range rounds {
		if turnsAfterTheFirst(t) > 0 {
			yielded++
		}
	}
	require.Greater(t, yielded, rounds/2)
}

// turnsAfterTheFirst returns how often another goroutine had the only proc between the
// first and the second callback of a new worker.
func turnsAfterTheFirst(t *testing.T) int64 {
	p := NewPool(WithWorkers(1), WithMaxWorkers(1)) // without a watchdog, so that yields stays
	p.yields.Store(true)
	var stop atomic.Bool
	var turns atomic.Int64 // on the only proc, of which a goroutine that computes is deprived
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			turns.Add(1)
			runtime.Gosched()
		}
	})
	var at [2]int64
	callback := func(i int) func() {
		return func() {
			at[i] = turns.Load()
			for begin := time.Now(); time.Since(begin) < 3*slowCallback; {
			}
		}
	}
	_, err := p.SubmitBatch([]func(){callback(0), callback(1), func() { stop.Store(true) }})
	require.NoError(t, err)
	wg.Wait()
	require.NoError(t, p.Shutdown(t.Context()))
	return at[1] - at[0]
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
	synctest.Test(t, func(t *testing.T) { // in which the watchdog does not come meanwhile
		p := NewPool(WithWorkers(1))
		s, n, err := p.Share([]func(){func() { p.yields.Store(true) }, func() {}})
		require.NoError(t, err)
		require.Equal(t, 2, n)
		s.Run()
		require.False(t, p.yields.Load())
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// A worker that was started and has not got to run keeps nobody waiting who could be
// served by the goroutine that helps.
func TestPool_HelpRunsWhatAWorkerHasYetToBegin(t *testing.T) {
	p := NewPool(WithWorkers(1))
	var order []int
	note := func(i int) func() { return func() { order = append(order, i) } }
	p.mu.Lock()
	for i := range 2 {
		p.queue.push(note(i))
		p.submitted++
	}
	n := p.startLocked()
	p.mu.Unlock()
	require.Equal(t, 1, n) // its go statement is yet to come
	s, _, err := p.Share([]func(){note(4)})
	require.NoError(t, err)
	s.Run()
	require.Equal(t, []int{4}, order)
	p.Help()
	require.Equal(t, []int{4, 0, 1}, order)
	p.spawn(n)
	require.NoError(t, p.Shutdown(t.Context()))
	require.EqualValues(t, 3, p.Stats().Run)
	require.LessOrEqual(t, p.Stats().PeakWorkers, 2)
}

// Where workers have begun, or there may be no others, nobody helps.
func TestPool_HelpLeavesTheRestToTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, opts := range [][]PoolOption{{WithWorkers(1)}, {WithWorkers(1), WithMaxWorkers(1)}} {
			p := NewPool(opts...)
			release := make(chan struct{})
			require.NoError(t, p.Submit(func() { <-release }))
			if p.max == unbounded {
				synctest.Wait() // it has begun
			}
			ran := false
			require.NoError(t, p.Submit(func() { ran = true }))
			p.Help()
			require.False(t, ran)
			close(release)
			require.NoError(t, p.Shutdown(t.Context()))
			require.True(t, ran)
			p.Help()
		}
	})
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
