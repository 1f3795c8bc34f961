package executor

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"
)

// Where callbacks take long, other goroutines run between them, and not just when Go's
// scheduler interrupts a worker, which it does every 10 ms.
func TestPool_YieldsBetweenCallbacksThatTakeLong(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := NewPool(WithWorkers(1), WithMaxWorkers(2))
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

// A worker that was started and has not got to run keeps nobody waiting who could be
// served by the goroutine of a Share.
func TestShare_RunsWhatAWorkerHasYetToBegin(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := NewPool(WithWorkers(1))
	var order []int
	note := func(i int) func() { return func() { order = append(order, i) } }
	_, err := p.SubmitBatch([]func(){note(1), note(2)}) // its worker waits for this proc
	require.NoError(t, err)
	s, n, err := p.Share([]func(){note(0)})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	s.Run()
	require.Len(t, order, 3)
	require.NoError(t, p.Shutdown(t.Context()))
	require.EqualValues(t, 3, p.Stats().Run)
	require.LessOrEqual(t, p.Stats().PeakWorkers, 2)
}
