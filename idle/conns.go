package idle

import (
	"context"
	"iter"
	"net"
	"sync"
	"time"
)

// A Conns closes connections that have gone silent: those that it wraps, and those that
// its listeners accept. Make one with [NewConns]. Any goroutine may call its methods.
// Code in a testing/synctest bubble needs a Conns that was made there: see [Monitor].
type Conns struct {
	// Set by NewConns.

	monitor *Monitor[*Conn]
	timeout time.Duration
	onIdle  func(c *Conn, since time.Time) (evict bool)

	mu struct {
		sync.Mutex
		n ConnsStats
	}
}

// ConnsStats holds counts of connections. At every moment Wrapped = Evicted + Closed
// + Open.
type ConnsStats struct {
	// Wrapped counts all connections, wrapped or accepted.
	Wrapped uint64
	// Evicted counts the connections that were closed for being idle.
	Evicted uint64
	// Closed counts the connections that their users closed.
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
	c := connsConfig{config: config{tick: DefaultTick, slack: DefaultSlack, onPanic: printPanic, recheck: true}}
	for i, o := range opts {
		notNil("NewConns", i, o)
		o.applyConns(&c)
	}
	cs := &Conns{timeout: timeout, onIdle: c.onIdle}
	cs.monitor = New((*Conn).idled, option(func(m *config) { *m = c.config }))
	return cs
}

// made returns cs. It panics if cs is a zero Conns.
func (cs *Conns) made() *Conns {
	if cs.monitor == nil {
		panic("idle: a Conns that was not made by NewConns")
	}
	return cs
}

// Wrap returns a Conn over c and starts watching it. Afterwards use only the Conn. After
// Close the error is [ErrClosed], and c stays open.
func (cs *Conns) Wrap(c net.Conn) (*Conn, error) {
	w := &Conn{under: c, conns: cs.made(), timeout: cs.timeout}
	cs.monitor.mustBeHere(cs.monitor.now())
	// Count the connection before it is watched: it may be evicted at once.
	cs.count(func(n *ConnsStats) { n.Wrapped++; n.Open++ })
	if err := w.watch(); err != nil {
		cs.count(func(n *ConnsStats) { n.Wrapped--; n.Open-- })
		return nil, err
	}
	return w, nil
}

// Listener returns a Listener over l. The Conns watches the connections that the Listener
// accepts.
func (cs *Conns) Listener(l net.Listener) *Listener { return &Listener{under: l, conns: cs.made()} }

// Stats returns the counts.
func (cs *Conns) Stats() ConnsStats {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.mu.n
}

// Close stops the watching and returns nil. Open connections stay open and usable, and
// are no longer closed for being idle: [Conns.TakeLeftover] returns them. After Close,
// Wrap returns [ErrClosed]. Close does not wait: see [Monitor.Close]. If all connections
// are closed, there is no need to call Close.
func (cs *Conns) Close() error { return cs.made().monitor.Close() }

// Shutdown does what Close does, and waits until all callbacks have returned. If ctx ends
// first, Shutdown returns the error of ctx.
func (cs *Conns) Shutdown(ctx context.Context) error { return cs.made().monitor.Shutdown(ctx) }

// TakeLeftover returns the connections that were open when the watching ended, in no
// particular order. It returns a connection only once: see [Monitor.TakeLeftover].
func (cs *Conns) TakeLeftover() iter.Seq[*Conn] {
	entries := cs.made().monitor.TakeLeftover()
	return func(yield func(*Conn) bool) {
		for e := range entries {
			if !yield(e.Value()) {
				return
			}
		}
	}
}

func (cs *Conns) count(f func(*ConnsStats)) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	f(&cs.mu.n)
}
