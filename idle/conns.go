package idle

import (
	"context"
	"iter"
	"net"
	"sync"
	"time"
)

// A Conns closes connections that have gone silent. It watches the connections of
// [Conns.Wrap] and of its listeners. Make one with [NewConns]. Any goroutine may call its
// methods. For testing/synctest, see [Monitor].
type Conns struct {
	// NewConns sets these fields.

	monitor *Monitor[*Conn]
	timeout time.Duration

	mu struct {
		sync.Mutex
		stats ConnsStats
	}
}

// ConnsStats counts connections. Always Wrapped = Evicted + Closed + Open.
type ConnsStats struct {
	// Wrapped counts all connections, from Wrap and from listeners.
	Wrapped uint64
	// Evicted counts the connections that were closed for being idle.
	Evicted uint64
	// Closed counts the connections that were closed by Conn.Close.
	Closed uint64
	// Open is the number of connections that are open.
	Open int

	// Refused counts the evictions that the callback of WithOnIdle refused.
	Refused uint64
}

// NewConns returns a Conns that closes a connection when it has neither read nor written
// for timeout. NewConns panics if timeout is not positive.
func NewConns(timeout time.Duration, opts ...ConnsOption) *Conns {
	checkTimeout("NewConns", timeout)
	c := newConfig()
	for i, o := range opts {
		mustNotBeNil("NewConns", i, o)
		o.applyConns(&c)
	}
	cs := &Conns{timeout: timeout}
	if onIdle := onIdleOf[*Conn]("NewConns", &c); onIdle != nil {
		c.onIdle = func(conn *Conn, since time.Time) bool {
			evict := conn.isClosed() || onIdle(conn, since)
			if !evict {
				cs.updateStats(func(s *ConnsStats) { s.Refused++ })
			}
			return evict
		}
	}
	cs.monitor = New((*Conn).closeIdle, option(func(m *config) { *m = c }))
	cs.monitor.ignoresTouches = true
	if cs.monitor.isRealTime {
		cs.monitor.delivered = func(e *entry, now Moment) Moment { return entryOf[*Conn](e).value.deliveredLocked(now) }
	}
	return cs
}

// mustNotBeZero returns cs. It panics if cs is a zero Conns.
func (cs *Conns) mustNotBeZero() *Conns {
	if cs.monitor == nil {
		panic("idle: a Conns that was not made by NewConns")
	}
	return cs
}

// Wrap returns a Conn over c and watches it. Use the Conn instead of c. After Close, Wrap
// returns [ErrClosed] and leaves c open.
func (cs *Conns) Wrap(c net.Conn) (*Conn, error) {
	w := &Conn{inner: c, conns: cs.mustNotBeZero()}
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // such as *tls.Conn
		c = t.NetConn()
	}
	w.tcp, _ = c.(*net.TCPConn)
	cs.monitor.mustKnowTime(cs.monitor.now())
	// Count first: once the connection is watched, it may be evicted at any time. The
	// callbacks then wait for mu.
	cs.updateStats(func(s *ConnsStats) { s.Wrapped++; s.Open++ })
	w.mu.Lock()
	defer w.mu.Unlock()
	var err error
	if w.entry, err = cs.monitor.Watch(w, cs.timeout); err != nil {
		cs.updateStats(func(s *ConnsStats) { s.Wrapped--; s.Open-- })
		return nil, err
	}
	return w, nil
}

// Listener returns a Listener over l. The Conns watches the connections that the Listener
// accepts.
func (cs *Conns) Listener(l net.Listener) *Listener { return &Listener{l, cs.mustNotBeZero()} }

// Stats returns the counts.
func (cs *Conns) Stats() ConnsStats {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.mu.stats
}

// Close stops watching and returns nil. Open connections stay open: [Conns.TakeLeftover]
// returns them. Close does not wait for callbacks.
func (cs *Conns) Close() error { return cs.mustNotBeZero().monitor.Close() }

// Shutdown does what Close does, and waits until all callbacks have returned. If ctx ends
// first, Shutdown returns the error of ctx.
func (cs *Conns) Shutdown(ctx context.Context) error { return cs.mustNotBeZero().monitor.Shutdown(ctx) }

// TakeLeftover returns the connections that were open when the Conns was closed, in no
// particular order. It returns each connection once: see [Monitor.TakeLeftover].
func (cs *Conns) TakeLeftover() iter.Seq[*Conn] {
	entries := cs.mustNotBeZero().monitor.TakeLeftover()
	return func(yield func(*Conn) bool) {
		for e := range entries {
			if !yield(e.Value()) {
				return
			}
		}
	}
}

func (cs *Conns) updateStats(f func(*ConnsStats)) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	f(&cs.mu.stats)
}
