package idle_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tickless/tickless/idle"
)

// The handlers of this server may take longer than the timeout. ConnState tells which
// connections have a running request, so that they stay open.
func ExampleListener_http() {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	const timeout = 100 * time.Millisecond // 30 seconds in a program
	var active sync.Map
	l := idle.NewListener(tcp, timeout, idle.WithOnIdle(func(c *idle.Conn, _ time.Time) (evict bool) {
		_, busy := active.Load(c)
		return !busy
	}))
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(2 * timeout)
			io.WriteString(w, "slow but sure")
		}),
		ConnState: func(c net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew, http.StateActive: // ReadHeaderTimeout ends those that send nothing
				active.Store(c, true)
			default:
				active.Delete(c)
			}
		},
		ReadHeaderTimeout: 10 * time.Second,
	}
	go srv.Serve(l)
	defer srv.Close()

	resp, err := http.Get("http://" + tcp.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	fmt.Println(string(text), err)
	// Output: slow but sure <nil>
}
