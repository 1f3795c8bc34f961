package executor_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
)

// Workers do not yield here. Even with GOMAXPROCS 1, other goroutines run, because Go's
// scheduler preempts the worker every 10 ms.
func TestPool_OthersRunBetweenCallbacks(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := executor.NewPool()
	over, runs := atomic.NewBool(false), atomic.NewInt64(0)
	var again func()
	again = func() {
		if runs.Inc(); !over.Load() {
			_ = p.Submit(again) // so the queue is never empty
		}
	}
	for range 1000 {
		require.NoError(t, p.Submit(again))
	}
	for range 10 {
		for before := runs.Load(); runs.Load() == before; {
			runtime.Gosched()
		}
	}
	over.Store(true)
	require.NoError(t, p.Shutdown(t.Context()))
	require.Greater(t, runs.Load(), int64(1000))
}
