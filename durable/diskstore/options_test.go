package diskstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/diskstore"
)

// What is at the border of what is allowed is taken, and what is beyond it panics.
func TestOptions_RefuseMisuse(t *testing.T) {
	diskstore.WithShards(1)
	diskstore.WithShards(1024)
	diskstore.WithSync(time.Millisecond)
	diskstore.WithSync(time.Minute)
	for _, n := range []int{-1, 0, 3, 1023, 2048} {
		require.Panics(t, func() { diskstore.WithShards(n) }, n)
	}
	for _, every := range []time.Duration{0, time.Millisecond - 1, time.Minute + 1} {
		require.Panics(t, func() { diskstore.WithSync(every) }, every)
	}
}
