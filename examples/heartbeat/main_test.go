package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The timeout is long enough that no scheduling delay looks like silence.
func TestHeartbeat_OnlyTheSilentAreClosed(t *testing.T) {
	const timeout = 3 * time.Second
	r, err := run(20, 5, timeout, 3*timeout)
	require.NoError(t, err)
	require.Equal(t, 5, r.evicted)
	require.GreaterOrEqual(t, r.soonest, timeout, "early")
	require.Greater(t, r.heartbeats, 20)
}
