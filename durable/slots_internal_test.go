package durable

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A loop that has places is not called for more: the next in line is.
func TestSlots_WhoHasAPlaceWaitsForNone(t *testing.T) {
	s := newSlots(1)
	var loops [3]*loop
	for i := range loops {
		loops[i] = &loop{signal: make(chan struct{}, 1)}
	}
	take := func(i, want int) {
		t.Helper()
		n, full := s.take(loops[i], 1)
		require.Equal(t, want, n)
		require.True(t, full)
	}
	take(2, 1)
	take(1, 0)
	take(0, 0)
	require.Same(t, loops[1], s.release(1))
	take(0, 1) // it came first, for another reason
	take(1, 0)
	require.Same(t, loops[1], s.release(1))
}
