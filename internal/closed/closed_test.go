package closed_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/internal/closed"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
)

// Every type that can be closed has these methods.
type ends interface {
	io.Closer
	Shutdown(ctx context.Context) error
}

var _ = []ends{
	(*timer.Scheduler)(nil),
	(*purgatory.Purgatory[string])(nil),
	(*idle.Monitor[string])(nil),
	(*idle.Conns)(nil),
	(*executor.Pool)(nil),
	(*executor.Goroutines)(nil),
	(*executor.Inline)(nil),
}

// errors.Is distinguishes the packages' errors, and matches each with timer.ErrClosed.
func TestErrClosed_HasOneRoot(t *testing.T) {
	require.Same(t, closed.TimerErrClosed, timer.ErrClosed)
	others := []error{executor.ErrClosed, idle.ErrClosed, purgatory.ErrClosed}
	for i, err := range others {
		require.ErrorIs(t, err, timer.ErrClosed)
		require.NotErrorIs(t, timer.ErrClosed, err)
		for j, other := range others {
			require.Equal(t, i == j, errors.Is(err, other), "%v, %v", err, other)
		}
	}
	for _, err := range []error{idle.ErrIdle, timer.ErrTooManyPending} {
		require.NotErrorIs(t, err, timer.ErrClosed)
	}
}
