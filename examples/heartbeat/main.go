// Command heartbeat is a WebSocket server that closes connections which send no
// heartbeat, with clients on the same machine of which some fall silent.
//
//	go run ./heartbeat -clients 200 -silent 20
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/coder/websocket"
)

func main() {
	clients := flag.Int("clients", 100, "number of connections")
	silent := flag.Int("silent", 10, "number of connections that stop sending heartbeats")
	timeout := flag.Duration("timeout", time.Second, "how long a connection may be silent")
	length := flag.Duration("for", 5*time.Second, "how long to run")
	flag.Parse()
	if flag.NArg() > 0 || *clients < 1 || *silent < 0 || *silent > *clients || *timeout <= 0 || *length <= 2**timeout {
		fmt.Fprintln(os.Stderr, "heartbeat: needs 1 client or more, no more silent ones than that, and a run of more than twice the timeout")
		os.Exit(2)
	}
	r, err := run(*clients, *silent, *timeout, *length)
	if err != nil {
		fmt.Fprintln(os.Stderr, "heartbeat:", err)
		os.Exit(1)
	}
	fmt.Printf("%d connections, %d heartbeats; %d fell silent, %d were closed for it, the first after %v\n",
		*clients, r.heartbeats, *silent, r.evicted, r.soonest.Round(time.Millisecond))
}

// result is what came of a run.
type result struct {
	heartbeats, evicted int
	soonest             time.Duration // shortest silence that was closed for
}

// run has clients connect to a server on loopback; the first silent of them send
// one heartbeat and no more.
func run(clients, silent int, timeout, length time.Duration) (result, error) {
	var mu sync.Mutex
	r := result{soonest: length}
	srv := newServer(timeout, func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		r.evicted++
		r.soonest = min(r.soonest, d)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return r, err
	}
	h := &http.Server{Handler: srv}
	go h.Serve(l)
	defer h.Close()

	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var wg sync.WaitGroup
	errs := make(chan error, clients)
	for i := range clients {
		wg.Go(func() {
			n, err := client(ctx, l.Addr().String(), timeout/4, i < silent)
			mu.Lock()
			r.heartbeats += n
			mu.Unlock()
			if err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	if err := srv.close(context.Background()); err != nil {
		return r, err
	}
	return r, errors.Join(collect(errs)...)
}

func collect(c <-chan error) (errs []error) {
	for err := range c {
		errs = append(errs, err)
	}
	return errs
}

// client sends heartbeats until ctx ends; or one, and waits to be closed. It
// returns how many were answered.
func client(ctx context.Context, addr string, every time.Duration, silent bool) (n int, err error) {
	c, _, err := websocket.Dial(context.Background(), "ws://"+addr, nil)
	if err != nil {
		return 0, err
	}
	defer c.CloseNow()
	beat := func() error {
		if err := c.Write(context.Background(), websocket.MessageText, []byte("beat")); err != nil {
			return err
		}
		_, _, err := c.Read(context.Background())
		return err
	}
	if err := beat(); err != nil {
		return n, err
	}
	n++
	if silent {
		_, _, err := c.Read(ctx)
		if websocket.CloseStatus(err) != closeSilent {
			return n, fmt.Errorf("a silent connection was not closed: %w", err)
		}
		return n, nil
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return n, c.Close(websocket.StatusNormalClosure, "")
		case <-t.C:
			if err := beat(); err != nil {
				return n, fmt.Errorf("a connection that sent heartbeats: %w", err)
			}
			n++
		}
	}
}
