package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/service"
)

// A pipeListener accepts connections in memory, whose deadlines follow the bubble's clock.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	l.conns <- server
	return client, nil
}

// A client that sends its header or its body, or takes its answer, at one byte a second is cut
// off. Many of them hold up nobody, if they have no token.
func TestServe_SlowClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := slog.New(slog.DiscardHandler)
		const secret = "writer-writer-writer-writer"
		tokens, err := service.ReadTokens(strings.NewReader("w rw " + secret))
		if err != nil {
			t.Fatal(err)
		}
		client := durable.New(memstore.New(), durable.WithLogger(quiet))
		server := newServer(service.New(client, service.Config{Log: quiet, Tokens: tokens}), quiet)
		l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(l) }()

		const head = " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + secret + "\r\nContent-Type: application/json\r\n"
		begin := time.Now()
		var all sync.WaitGroup
		// send sends a part of a request at once, and then a byte a second, until the server
		// closes the connection.
		send := func(first string, limit time.Duration) {
			all.Go(func() {
				conn, _ := l.dial(t.Context(), "", "")
				go io.Copy(io.Discard, conn)
				_, err := io.WriteString(conn, first)
				for err == nil && time.Since(begin) < time.Hour {
					time.Sleep(time.Second)
					_, err = conn.Write([]byte("x"))
				}
				if d := time.Since(begin); d > limit {
					t.Errorf("cut off after %v: %.20q", d, first)
				}
			})
		}
		send("PUT /v1/tasks/k"+head+"X-Slow: ", 12*time.Second)
		send("PUT /v1/tasks/k"+head+"Content-Length: 100000\r\n\r\n", 62*time.Second)
		send("POST /v1/tasks"+head+"Transfer-Encoding: chunked\r\n\r\n10000\r\n", 62*time.Second)
		for range 1000 {
			send("POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 4000\r\n\r\ntoken=", 62*time.Second)
		}
		all.Go(func() {
			conn, _ := l.dial(t.Context(), "", "")
			_, err := io.WriteString(conn, "GET /openapi.json"+head+"\r\n")
			for err == nil && time.Since(begin) < time.Hour {
				time.Sleep(time.Second)
				_, err = conn.Read(make([]byte, 1))
			}
			if d := time.Since(begin); d > 62*time.Second {
				t.Errorf("cut off after %v: an answer", d)
			}
		})

		transport := &http.Transport{DialContext: l.dial}
		for i := range 60 {
			time.Sleep(time.Second)
			sent := time.Now()
			req, err := http.NewRequest("PUT", fmt.Sprint("http://localhost/v1/tasks/", i), strings.NewReader(`{"url":"http://x.example/","delay":"1h"}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+secret)
			req.Header.Set("Content-Type", "application/json")
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, resp.Body)
			if err := errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusCreated || time.Since(sent) != 0 {
				t.Fatalf("another client's request: %v, %v, after %v", err, resp.Status, time.Since(sent))
			}
		}
		all.Wait()
		transport.CloseIdleConnections()
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}
