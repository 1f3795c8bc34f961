// Command heartbeat is a WebSocket server. It closes a connection after ten seconds
// without a message.
//
//	go run ./heartbeat     # ws://localhost:8080
package main

import (
	"log"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/tickless/tickless/idle"
)

func main() {
	log.Fatal(http.ListenAndServe("localhost:8080", newServer(10*time.Second)))
}

// A server sends each message back. Each message is a heartbeat: it keeps its connection
// open.
type server struct {
	timeout time.Duration
	monitor *idle.Monitor[*websocket.Conn]
}

func newServer(timeout time.Duration) *server {
	return &server{timeout, idle.New(func(c *websocket.Conn, since time.Time) {
		c.Close(websocket.StatusPolicyViolation, "no heartbeat since "+since.Format(time.TimeOnly))
	})}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	defer c.CloseNow()
	entry, err := s.monitor.Watch(c, s.timeout)
	if err != nil {
		c.Close(websocket.StatusTryAgainLater, "closing")
		return
	}
	defer entry.Stop()
	for {
		kind, message, err := c.Read(r.Context())
		if err != nil {
			return
		}
		entry.Touch()
		if err := c.Write(r.Context(), kind, message); err != nil {
			return
		}
	}
}
