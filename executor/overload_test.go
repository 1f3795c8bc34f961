package executor_test

import (
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
)

// full returns a pool of one worker that is held up, with a full queue of two.
func full(t *testing.T, policy executor.Overload, opts ...executor.PoolOption) (p *executor.Pool, release chan struct{}, ran *atomic.Int32) {
	p = executor.NewPool(append(opts, executor.WithMaxWorkers(1), executor.WithQueue(2), executor.WithOverload(policy))...)
	release, ran = make(chan struct{}), new(atomic.Int32)
	require.NoError(t, p.Submit(func() { <-release; ran.Inc() }))
	synctest.Wait()
	for range 2 {
		require.NoError(t, p.Submit(func() { <-release; ran.Inc() }))
	}
	return p, release, ran
}

func TestOverload_String(t *testing.T) {
	assert.Equal(t, "Block", executor.Block.String())
	assert.Equal(t, "CallerRuns", executor.CallerRuns.String())
	assert.Equal(t, "Reject", executor.Reject.String())
	assert.Equal(t, "unknown", executor.Overload(7).String())
}

func TestOverloadReject_IsToldAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, release, ran := full(t, executor.Reject)
		f := func() { ran.Inc() }
		require.ErrorIs(t, p.Submit(f), executor.ErrOverloaded)
		release <- struct{}{}
		synctest.Wait()
		n, err := p.SubmitBatch([]func(){f, f, f}) // there is room for one
		require.ErrorIs(t, err, executor.ErrOverloaded)
		require.Equal(t, 1, n)
		s := p.Stats()
		conserve(t, s, 7)
		require.EqualValues(t, 3, s.Rejected)
		require.Equal(t, 2, s.Queued)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 4, ran.Load())
	})
}

// A worker that can be started makes room: the bound is for what must wait.
func TestOverloadReject_NotWhileWorkersCanStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(10), executor.WithMaxWorkers(10),
			executor.WithQueue(5), executor.WithOverload(executor.Reject))
		n, err := p.SubmitBatch(slices.Repeat([]func(){func() { time.Sleep(time.Second) }}, 16))
		require.Equal(t, 15, n)
		require.ErrorIs(t, err, executor.ErrOverloaded)
		require.NoError(t, p.Shutdown(t.Context()))

		// Nor while those that were started have not got to run.
		p = executor.NewPool(executor.WithWorkers(100), executor.WithMaxWorkers(100),
			executor.WithQueue(1), executor.WithOverload(executor.Reject))
		for range 101 {
			require.NoError(t, p.Submit(func() { time.Sleep(time.Second) }))
		}
		require.ErrorIs(t, p.Submit(func() {}), executor.ErrOverloaded)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestOverloadCallerRuns_OnTheSubmitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var caught []any
		p, release, ran := full(t, executor.CallerRuns,
			executor.WithPanicHandler(func(v any, _ []byte) { caught = append(caught, v) }))
		here := 0 // no lock: all on this goroutine
		f := func() {
			here++
			s := p.Stats()
			assert.Equal(t, 2, s.Running, "the worker and the caller")
			conserve(t, s, int(s.Submitted))
		}
		require.NoError(t, p.Submit(f))
		n, err := p.SubmitBatch([]func(){f, boom, f})
		require.NoError(t, err)
		require.Equal(t, 4, n+1)
		require.Equal(t, 3, here)
		require.Equal(t, []any{errBoom}, caught)
		s := p.Stats()
		conserve(t, s, 7)
		require.EqualValues(t, 4, s.CallerRan)
		require.EqualValues(t, 4, s.Run)
		require.EqualValues(t, 1, s.Panicked)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 3, ran.Load())
	})
}

// Shutdown waits for what the callers run, too.
func TestOverloadCallerRuns_Shutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, release, _ := full(t, executor.CallerRuns)
		close(release)
		gate := make(chan struct{})
		p2, release2, _ := full(t, executor.CallerRuns)
		var ended atomic.Bool
		go p2.Submit(func() { <-gate; time.Sleep(time.Minute); ended.Store(true) })
		synctest.Wait()
		close(release2)
		close(gate)
		require.NoError(t, p2.Shutdown(t.Context()))
		require.True(t, ended.Load())
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestOverloadBlock_WakesExactlyWhenThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, release, ran := full(t, executor.Block)
		var in []int
		var mu sync.Mutex
		for i := range 5 {
			go func() {
				assert.NoError(t, p.Submit(func() { <-release; ran.Inc() }))
				mu.Lock()
				in = append(in, i)
				mu.Unlock()
			}()
			synctest.Wait()
		}
		for i := range 5 {
			require.Len(t, in, i)
			require.Equal(t, 2, p.Stats().Queued)
			release <- struct{}{} // the worker takes one from the queue
			synctest.Wait()
		}
		require.Equal(t, []int{0, 1, 2, 3, 4}, in, "in the order they came")
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 8, ran.Load())
	})
}

func TestOverloadBlock_BatchLargerThanTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, release, ran := full(t, executor.Block)
		const batches, size = 3, 700
		var wg sync.WaitGroup
		for range batches {
			wg.Go(func() {
				n, err := p.SubmitBatch(slices.Repeat([]func(){func() { ran.Inc() }}, size))
				assert.NoError(t, err)
				assert.Equal(t, size, n)
			})
		}
		synctest.Wait()
		require.LessOrEqual(t, p.Stats().Queued, 2)
		close(release)
		wg.Wait()
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, batches*size+3, ran.Load())
		conserve(t, p.Stats(), batches*size+3)
	})
}

func TestOverloadBlock_ShutdownReleasesTheSubmitters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, release, ran := full(t, executor.Block)
		f := func() { ran.Inc() }
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { assert.ErrorIs(t, p.Submit(f), executor.ErrClosed) })
			wg.Go(func() {
				n, err := p.SubmitBatch([]func(){f, f})
				assert.ErrorIs(t, err, executor.ErrClosed)
				assert.Zero(t, n)
			})
		}
		synctest.Wait()
		go p.Shutdown(t.Context())
		wg.Wait() // before anything has run
		require.Zero(t, ran.Load())
		require.EqualValues(t, 9, p.Stats().Rejected)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 3, ran.Load())
		conserve(t, p.Stats(), 12)
	})
}

// ants issue 146: a task that panicked stranded the submitters that waited
// for a worker.
func TestOverloadBlock_PanicStrandsNoSubmitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithMaxWorkers(1), executor.WithQueue(1),
			executor.WithPanicHandler(func(any, []byte) {}))
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				f := boom
				if i%2 == 0 {
					f = exit
				}
				assert.NoError(t, p.Submit(func() { time.Sleep(time.Millisecond); f() }))
			})
		}
		wg.Wait()
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 50, p.Stats().Run)
		require.EqualValues(t, 25, p.Stats().Panicked)
	})
}

// A growing pool makes room for submitters by starting workers.
func TestOverloadBlock_GrowthMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(1), executor.WithQueue(1))
		release := make(chan struct{})
		began := time.Now()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { assert.NoError(t, p.Submit(func() { <-release })) })
		}
		wg.Wait()
		require.Less(t, time.Since(began), time.Second)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// Without WithQueue there is room for any number of callbacks, and no policy decides.
func TestWithOverload_WithoutAQueue(t *testing.T) {
	const n = 1000
	for _, policy := range []executor.Overload{executor.Block, executor.CallerRuns, executor.Reject} {
		synctest.Test(t, func(t *testing.T) {
			p := executor.NewPool(executor.WithMaxWorkers(1), executor.WithOverload(policy))
			require.False(t, p.MayBlock())
			release := make(chan struct{})
			f := func() { <-release }
			for range n {
				require.NoError(t, p.Submit(f))
			}
			accepted, err := p.SubmitBatch(slices.Repeat([]func(){f}, n))
			require.NoError(t, err)
			require.Equal(t, n, accepted)
			s := p.Stats()
			conserve(t, s, 2*n)
			require.Zero(t, s.Run+s.Rejected+s.CallerRan)
			close(release)
			require.NoError(t, p.Shutdown(t.Context()))
			require.EqualValues(t, 2*n, p.Stats().Run)
		})
	}
}

// Bounds that are larger than any number of callbacks are none.
func TestNewPool_LargestBounds(t *testing.T) {
	for _, opts := range [][]executor.PoolOption{
		{executor.WithQueue(math.MaxInt)},
		{executor.WithQueue(math.MaxInt), executor.WithOverload(executor.Reject)},
		{executor.WithQueue(math.MaxInt - 1), executor.WithWorkers(math.MaxInt)},
		{executor.WithQueue(1 << 29), executor.WithWorkers(1 << 29), executor.WithMaxWorkers(math.MaxInt)},
	} {
		p := executor.NewPool(opts...)
		ran := make(chan bool)
		require.NoError(t, p.Submit(func() { close(ran) }))
		<-ran
		require.NoError(t, p.Shutdown(t.Context()))
	}
}
