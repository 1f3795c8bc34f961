package benchmarks

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/tickless/tickless/httptimeout"
)

// ContextServer has an http.Server answer requests on a connection that stays, each
// with a deadline of 30 seconds: by context.WithTimeout and by package httptimeout. It
// reports cpu-ns, the CPU time a request above that of a server whose requests have no
// deadline and are copied all the same.
func ContextServer(b *testing.B) {
	for _, impl := range []string{Time.Name, Tickless.Name} {
		b.Run("impl="+impl, func(b *testing.B) {
			onProcs(b, func() map[string]float64 {
				answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Context().Err() == nil {
						w.WriteHeader(http.StatusNoContent)
					}
				})
				plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					answer(w, r.WithContext(r.Context()))
				})
				timed := httptimeout.Handler(30*time.Second, answer)
				if impl == Time.Name {
					timed = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
						defer cancel()
						answer(w, r.WithContext(ctx))
					})
				}
				// In turn, so that what changes on the machine counts for both.
				const rounds = 20
				n := choose(burst, 100*burst, 200*burst)
				var with, without time.Duration
				for range rounds {
					without += serve(b, plain, n)
					with += serve(b, timed, n)
				}
				return map[string]float64{"cpu-ns": float64((with - without).Nanoseconds()) / float64(rounds*n)}
			})
		})
	}
}

// burst is how many requests are sent at once, so that little of the time is for waking
// up.
const burst = 50

// serve returns the CPU time that n requests take.
func serve(b *testing.B, h http.Handler, n int) time.Duration {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := &http.Server{Handler: h}
	go srv.Serve(l)
	defer srv.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	requests := bytes.Repeat([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), burst)
	runtime.GC()
	begin, _, _ := usage()
	for range n / burst {
		if _, err := conn.Write(requests); err != nil {
			b.Fatal(err)
		}
		for answers := 0; answers < burst; {
			line, err := in.ReadSlice('\n')
			if err != nil {
				b.Fatal(err)
			}
			if len(line) == len("\r\n") {
				answers++
			}
		}
	}
	end, _, _ := usage()
	return end - begin
}
