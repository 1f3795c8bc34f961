package heartbeat

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/idle"
)

// The sides over TCP. Each evicts a connection that sends no heartbeat for the
// timeout.

var servers = []func() server{
	func() server { return new(ticklessServer) },
	func() server { return new(deadlineServer) },
	func() server { return new(timerServer) },
}

// ticklessServer is idle.Conns: a Read is a heartbeat.
type ticklessServer struct {
	r  *run
	cs *idle.Conns
}

func (*ticklessServer) Name() string { return "tickless" }

func (s *ticklessServer) Open(r *run) {
	s.r = r
	s.cs = idle.NewConns(r.plan.config.Timeout, idle.WithOnIdle(func(c *idle.Conn, since time.Time) bool {
		r.evicted(c.NetConn().(numbered).i, since.Sub(r.base))
		return true
	}))
}

// numbered is a connection that knows which one it is.
type numbered struct {
	*net.TCPConn
	i int
}

func (s *ticklessServer) Serve(conn int, c *net.TCPConn) {
	w, err := s.cs.Wrap(numbered{c, conn})
	if err != nil {
		return
	}
	defer w.Close()
	for buf := make([]byte, 64); err == nil; {
		_, err = w.Read(buf)
	}
}

func (s *ticklessServer) Close() error {
	if s.cs == nil {
		return nil
	}
	return s.cs.Shutdown(context.Background())
}

// deadlineServer sets a deadline for each Read.
type deadlineServer struct{ r *run }

func (*deadlineServer) Name() string   { return "SetReadDeadline" }
func (s *deadlineServer) Open(r *run)  { s.r = r }
func (s *deadlineServer) Close() error { return nil }

func (s *deadlineServer) Serve(conn int, c *net.TCPConn) {
	timeout := s.r.plan.config.Timeout
	for buf := make([]byte, 64); ; {
		since := time.Now()
		_ = c.SetReadDeadline(since.Add(timeout)) // an error comes from Read too
		if _, err := c.Read(buf); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				s.r.evicted(conn, since.Sub(s.r.base))
			}
			return
		}
	}
}

// timerServer has a time.Timer for each connection, and resets it for each
// heartbeat.
type timerServer struct{ r *run }

func (*timerServer) Name() string   { return "time.Timer.Reset" }
func (s *timerServer) Open(r *run)  { s.r = r }
func (s *timerServer) Close() error { return nil }

func (s *timerServer) Serve(conn int, c *net.TCPConn) {
	timeout := s.r.plan.config.Timeout
	var since atomic.Duration
	since.Store(s.r.now())
	t := time.AfterFunc(timeout, func() {
		s.r.evicted(conn, since.Load())
		c.Close()
	})
	defer t.Stop()
	for buf := make([]byte, 64); ; {
		if _, err := c.Read(buf); err != nil {
			return
		}
		now := s.r.now()
		if !t.Reset(timeout) {
			t.Stop() // it had fired
			return
		}
		since.Store(now) // after the Reset: what has fired keeps its own
	}
}

// The sides in memory. To tell how late they are, they note the moment of each
// heartbeat of those that will fall silent; the others, most of them, are as in
// an event loop that has nothing to tell.

var loops = []func() loop{
	func() loop { return new(ticklessLoop) },
	func() loop { return new(timerLoop) },
}

// ticklessLoop is one idle.Monitor, told the time once a batch.
type ticklessLoop struct {
	m       *idle.Monitor[int]
	entries []*idle.Entry[int]
}

func (*ticklessLoop) Name() string { return "tickless" }

func (l *ticklessLoop) Open(r *run) error {
	l.m = idle.New(func(conn int, since time.Time) { r.evicted(conn, since.Sub(r.base)) })
	l.entries = make([]*idle.Entry[int], r.plan.conns)
	for i := range l.entries {
		e, err := l.m.Watch(i, r.plan.config.Timeout)
		if err != nil {
			return err
		}
		l.entries[i] = e
	}
	return nil
}

func (l *ticklessLoop) Beat(beats []beat) {
	now := l.m.Now()
	for _, b := range beats {
		l.entries[b.conn].TouchAt(now)
	}
}

func (l *ticklessLoop) Close() {
	if l.m != nil {
		l.m.Close()
		_ = l.m.Shutdown(context.Background())
	}
}

// timerLoop has a time.Timer for each connection.
type timerLoop struct {
	r      *run
	timers []*time.Timer
	since  []atomic.Duration
}

func (*timerLoop) Name() string { return "time.Timer.Reset" }

func (l *timerLoop) Open(r *run) error {
	l.r = r
	l.timers, l.since = make([]*time.Timer, r.plan.conns), make([]atomic.Duration, r.plan.conns)
	for i := range l.timers {
		l.since[i].Store(r.now())
		l.timers[i] = time.AfterFunc(r.plan.config.Timeout, func() { r.evicted(i, l.since[i].Load()) })
	}
	return nil
}

func (l *timerLoop) Beat(beats []beat) {
	now, timeout := l.r.now(), l.r.plan.config.Timeout
	for _, b := range beats {
		if !l.timers[b.conn].Reset(timeout) {
			l.timers[b.conn].Stop() // it had fired: the heartbeat comes too late
		} else if l.r.plan.silent[b.conn] {
			l.since[b.conn].Store(now) // after the Reset: what has fired keeps its own
		}
	}
}

func (l *timerLoop) Close() {
	for _, t := range l.timers {
		if t != nil {
			t.Stop()
		}
	}
}

// noLoop evicts nobody: what it takes is the load's own.
type noLoop struct{ entries []int64 }

func (*noLoop) Name() string { return "nothing" }

func (l *noLoop) Open(r *run) error {
	l.entries = make([]int64, r.plan.conns)
	return nil
}

func (l *noLoop) Beat(beats []beat) {
	for _, b := range beats {
		l.entries[b.conn]++
	}
}

func (l *noLoop) Close() {}
