package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/internal/cost"
)

// TestCosts sees that no operation's cost grows faster than its documentation says.
func TestCosts(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program")
	}
	costs, err := cost.Measure(t.TempDir(), ops, "github.com/tickless/tickless/...")
	require.NoError(t, err)
	for _, c := range costs {
		t.Run(c.Name, func(t *testing.T) {
			t.Log(c)
			require.NoError(t, c.Err())
		})
	}
}
