package memstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/memstore"
)

// Options accept the limits of their ranges and panic beyond them.
func TestOptions_RefuseMisuse(t *testing.T) {
	memstore.WithShards(1)
	memstore.WithShards(1024)
	for _, n := range []int{-1, 0, 3, 1023, 2048} {
		require.Panics(t, func() { memstore.WithShards(n) }, n)
	}
	require.Panics(t, func() { memstore.WithClock(nil) })
	require.Panics(t, func() { memstore.New(nil) })
}
