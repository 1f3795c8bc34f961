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

// The goroutine that the alarm has rung on runs what waits for workers that have yet to
// begin: it has a proc, where they wait behind all goroutines that compute, and so would
// any other that it started, once the alarm rings again.
func TestPoller_ServesThePool(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	// Go's scheduler may take the proc away in between: hence several attempts.
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
			others(1) // a proc runs the goroutine that was made last first: it is not the worker
			start(t, s, 1, func() {})
			for begin := time.Now(); time.Since(begin) < time.Millisecond; { // until that is due
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

// While callbacks take long the alarm has backups, before it was late even once: so here it
// is a backup that rings. They ring later, and so take the timer's place in front of the
// proc's run queue if both are due.
func TestPoller_BackupsWhileCallbacksTakeLong(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const busyFor = 100 * time.Millisecond // what procs count as busy for
	s := timer.New()
	backed := func() bool {
		time.Sleep(2 * busyFor) // so that nothing is left of the attempt before
		release := make(chan struct{})
		var all sync.WaitGroup
		for range 10 {
			all.Add(1)
			start(t, s, 0, func() { <-release; all.Done() })
		}
		time.Sleep(5 * time.Millisecond)
		before := timer.ReadAlarmStats().ByBackup
		done := make(chan struct{})
		start(t, s, time.Millisecond, func() { close(done) })
		for begin := time.Now(); time.Since(begin) < 5*time.Millisecond; { // until both are due
		}
		<-done
		close(release)
		all.Wait()
		return timer.ReadAlarmStats().ByBackup > before
	}
	for attempts := 0; !backed(); attempts++ {
		require.Less(t, attempts, 20)
	}
	require.NoError(t, s.Shutdown(t.Context()))
}

// Shutdown does not wait for callbacks of others that its poller's goroutine runs.
func TestSchedulerShutdown_BesideOthersThatBlock(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 20 {
		pool := executor.NewPool(executor.WithWorkers(1))
		s := timer.New(timer.WithExecutor(pool))
		release, fired := make(chan struct{}), make(chan struct{})
		start(t, s, time.Millisecond, func() {
			if err := pool.Submit(func() { <-release }); err != nil { // its worker waits for this proc
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
