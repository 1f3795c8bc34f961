package closed_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/internal/closed"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
)

// Who closed what can be told apart, and need not be.
func TestErrClosed_HasOneRoot(t *testing.T) {
	require.Same(t, closed.Root, timer.ErrClosed)
	others := []error{executor.ErrClosed, idle.ErrClosed, purgatory.ErrClosed}
	for i, err := range others {
		require.ErrorIs(t, err, timer.ErrClosed)
		require.NotErrorIs(t, timer.ErrClosed, err)
		for j, other := range others {
			require.Equal(t, i == j, errors.Is(err, other), "%v, %v", err, other)
		}
	}
	for _, err := range []error{executor.ErrOverloaded, idle.ErrIdle, idle.ErrTooMany, timer.ErrTooManyPending} {
		require.NotErrorIs(t, err, timer.ErrClosed)
	}
}
