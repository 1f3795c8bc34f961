package executor_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
)

// An executor may be shut down in a bubble, and again after the bubble has ended.
func TestShutdown_InABubbleAndAgainOutside(t *testing.T) {
	for name, newExecutor := range map[string]func() ownExecutor{
		"pool":       func() ownExecutor { return executor.NewPool() },
		"inline":     func() ownExecutor { return executor.NewInline() },
		"goroutines": func() ownExecutor { return executor.NewGoroutines() },
	} {
		t.Run(name, func(t *testing.T) {
			var e ownExecutor
			synctest.Test(t, func(t *testing.T) {
				e = newExecutor()
				require.NoError(t, e.Submit(func() {}))
				require.NoError(t, e.Shutdown(t.Context()))
			})
			require.NoError(t, e.Close())
			require.NoError(t, e.Shutdown(t.Context()))
			require.ErrorIs(t, e.Submit(func() {}), executor.ErrClosed)
			synctest.Test(t, func(t *testing.T) { require.NoError(t, e.Shutdown(t.Context())) })
		})
	}
}

type ownExecutor interface {
	executor.Executor
	Close() error
	Shutdown(context.Context) error
}
