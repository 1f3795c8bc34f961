package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/httptimeout"
	"github.com/tickless/tickless/timer"
)

// A service is an HTTP server and its client, in this process. Each request has a timeout
// on both sides.
type service struct {
	s      *timer.Scheduler
	client *http.Transport
	server *http.Server
	// calls is the number of requests in progress.
	calls atomic.Int32
	// serverLedger is the ledger in which the server records its timeouts.
	serverLedger atomic.Pointer[ledger]
}

const (
	maxCalls = 10
	// An idle connection stays open for keepAlive. That is less than a pause, so no
	// connection is open when memory is measured.
	keepAlive = 5 * time.Second
)

func calls(s *timer.Scheduler) (kind, *service) {
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	v := &service{s: s, client: &http.Transport{DialContext: l.dial, IdleConnTimeout: keepAlive}}
	v.server = &http.Server{Handler: http.HandlerFunc(v.serve)}
	go v.server.Serve(l) // until Shutdown
	return kind{"httptimeout", false, v.step}, v
}

func (v *service) step(l *ledger, rng *rand.Rand, longest time.Duration) {
	if v.calls.Load() >= maxCalls {
		return
	}
	v.serverLedger.Store(l)
	r, err := http.NewRequest(http.MethodGet, "http://pipe/", nil)
	if err != nil {
		l.complain("%v", err)
		return
	}
	r.Header.Set("Timeout", delay(rng, longest).String())
	r.Header.Set("Work", delay(rng, longest).String())
	timeout := delay(rng, longest)
	v.calls.Inc()
	go func() {
		defer v.calls.Dec()
		v.call(l, r, timeout)
	}()
}

// call sends a request. The request must be answered, or the client's timeout must pass.
func (v *service) call(l *ledger, r *http.Request, timeout time.Duration) {
	n := l.enter(timeout)
	resp, err := httptimeout.Transport(timeout, v.client).RoundTrip(r)
	switch {
	case err == nil:
		resp.Body.Close()
		n.stop(func() bool { return true })
	case errors.Is(err, context.DeadlineExceeded):
		n.fire()
	default:
		l.complain("%v", err)
	}
}

// serve works as long as the request says. It stops early at its timeout, or if the
// client disconnects.
func (v *service) serve(w http.ResponseWriter, r *http.Request) {
	l := v.serverLedger.Load()
	timeout, err := time.ParseDuration(r.Header.Get("Timeout"))
	if err != nil {
		l.complain("%v", err)
		return
	}
	work, err := time.ParseDuration(r.Header.Get("Work"))
	if err != nil {
		l.complain("%v", err)
		return
	}
	n := l.enter(timeout)
	var ctx context.Context
	httptimeout.Handler(timeout, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx = r.Context()
		context.AfterFunc(ctx, func() {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				n.fire()
			}
		})
		if v.s.SleepContext(ctx, work) != nil {
			w.WriteHeader(http.StatusGatewayTimeout)
		}
	})).ServeHTTP(w, r)
	n.stop(func() bool { return errors.Is(ctx.Err(), context.Canceled) })
}

func (v *service) Shutdown(ctx context.Context) error {
	v.client.CloseIdleConnections()
	return v.server.Shutdown(ctx)
}

// pipes is a listener whose connections are pipes in memory.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "soak", Net: "pipe"} }
