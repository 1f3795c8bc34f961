package timer_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

// The alarm's goroutine also runs callbacks that wait in the pool. It has a proc already,
// which the pool's workers must wait for.
func TestPoller_ServesThePool(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	// Go's scheduler may preempt the callback before it ends. Then the test tries again.
	served := func() (before bool) {
		pool := executor.NewPool(executor.WithWorkers(1))
		s := timer.New(timer.WithExecutor(pool))
		const crowd = 100
		var ran atomic.Int32
		var wg sync.WaitGroup
		others := func(n int) {
			for range n {
				wg.Go(func() { ran.Inc() })
			}
		}
		done := make(chan struct{})
		start(t, s, time.Millisecond, func() {
			others(crowd)
			_, err := pool.SubmitBatch([]func(){func() {}, func() {
				before = ran.Load() == 0
				close(done)
			}})
			if err != nil {
				panic(err)
			}
			others(1) // a proc runs the newest goroutine first, which is not the worker
			start(t, s, 1, func() {})
			for begin := time.Now(); time.Since(begin) < time.Millisecond; { // until the timer is due
			}
		})
		<-done
		wg.Wait()
		require.NoError(t, s.Shutdown(t.Context()))
		require.NoError(t, pool.Shutdown(t.Context()))
		return before
	}
	for attempts := 0; !served(); attempts++ {
		require.Less(t, attempts, 20)
	}
}

// The poller's goroutine may also run functions that other code has submitted to the
// pool. Shutdown does not wait for these functions.
func TestSchedulerShutdown_BesideOthersThatBlock(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 20 {
		pool := executor.NewPool(executor.WithWorkers(1))
		s := timer.New(timer.WithExecutor(pool))
		release, fired := make(chan struct{}), make(chan struct{})
		start(t, s, time.Millisecond, func() {
			if err := pool.Submit(func() { <-release }); err != nil { // the worker waits for this proc
				panic(err)
			}
			close(fired)
		})
		<-fired
		require.NoError(t, s.Shutdown(t.Context()))
		close(release)
		require.NoError(t, pool.Shutdown(t.Context()))
	}
}
