package main

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// Of two clients, the server closes the one that is silent, and not before the timeout.
func TestHeartbeat_OnlyTheSilentAreClosed(t *testing.T) {
	const timeout = 2 * time.Second
	server := httptest.NewServer(newServer(timeout))
	defer server.Close()
	dial := func() *websocket.Conn {
		c, _, err := websocket.Dial(t.Context(), server.URL, nil)
		require.NoError(t, err)
		t.Cleanup(func() { c.CloseNow() })
		return c
	}
	beat := func(c *websocket.Conn) {
		require.NoError(t, c.Write(t.Context(), websocket.MessageText, []byte("beat")))
		_, _, err := c.Read(t.Context())
		require.NoError(t, err)
	}
	lively, silent := dial(), dial()
	begin := time.Now()
	beat(silent)
	closed := make(chan error, 1)
	go func() {
		_, _, err := silent.Read(t.Context())
		closed <- err
	}()
	for {
		select {
		case err := <-closed:
			require.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err))
			require.GreaterOrEqual(t, time.Since(begin), timeout, "early")
			beat(lively)
			return
		case <-time.After(timeout / 8):
			beat(lively)
		}
	}
}
