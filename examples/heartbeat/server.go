package main

import (
	"context"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/tickless/tickless/idle"
)

// A server keeps WebSocket connections that send heartbeats and closes those that
// have gone silent.
type server struct {
	timeout time.Duration
	monitor *idle.Monitor[*websocket.Conn]
}

// closeSilent is what a connection is closed with that has sent no heartbeat.
const closeSilent = websocket.StatusPolicyViolation

func newServer(timeout time.Duration, evicted func(silent time.Duration)) *server {
	return &server{
		timeout: timeout,
		monitor: idle.New(func(c *websocket.Conn, since time.Time) {
			evicted(time.Since(since))
			c.Close(closeSilent, "no heartbeat")
		}),
	}
}

// ServeHTTP takes a connection and reads its messages until it ends. Any message
// is a heartbeat: it costs one word, whatever the number of connections.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	defer c.CloseNow()
	heart, err := s.monitor.Watch(c, s.timeout)
	if err != nil {
		c.Close(websocket.StatusTryAgainLater, "closing")
		return
	}
	defer heart.Stop()
	for {
		kind, message, err := c.Read(r.Context())
		if err != nil {
			return
		}
		heart.Touch()
		if err := c.Write(r.Context(), kind, message); err != nil {
			return
		}
	}
}

// close ends the watch; connections that are still there are the caller's.
func (s *server) close(ctx context.Context) error { return s.monitor.Shutdown(ctx) }
