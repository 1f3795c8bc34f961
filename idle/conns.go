package idle

import (
	"context"
	"iter"
	"net"
	"sync"
	"time"
)

// A Conns closes connections that have gone silent: those that it wraps, and those
// that its listeners accept. Make one with [NewConns]. Any goroutine may call its
// methods. Code in a testing/synctest bubble needs one that was made there: see [Monitor].
type Conns struct {
	// Fixed by NewConns.

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
	// Wrapped counts the connections, wrapped or accepted.
	Wrapped uint64
	// Evicted counts those that were closed for being idle.
	Evicted uint64
	// Closed counts those that their users closed.
	Closed uint64
	// Open is how many are open.
	Open int

	// Refused counts the evictions that the callback of WithOnIdle refused.
	Refused uint64
}

// NewConns makes a Conns that closes a connection when it has neither read nor
// written for timeout. It panics if timeout is not positive.
func NewConns(timeout time.Duration, opts ...ConnsOption) *Conns {
	checkTimeout("NewConns", timeout)
	c := connsConfig{config: config{tick: DefaultTick, slack: DefaultSlack, onPanic: printPanic, patient: true}}
	for i, o := range opts {
		notNil("NewConns", i, o)
		o.applyConns(&c)
	}
	cs := &Conns{timeout: timeout, onIdle: c.onIdle}
	cs.monitor = New((*Conn).idled, option(func(m *config) { *m = c.config }))
	return cs
}

// made returns cs, which NewConns has made.
func (cs *Conns) made() *Conns {
	if cs.monitor == nil {
		panic("idle: a Conns that was not made by NewConns")
	}
	return cs
}

// Wrap returns a Conn over c, which is watched from now on. Do not use c itself any
// more. After Close the error is [ErrClosed], and c stays as it is.
func (cs *Conns) Wrap(c net.Conn) (*Conn, error) {
	w := &Conn{under: c, conns: cs.made(), timeout: cs.timeout}
	cs.monitor.mustBeHere(cs.monitor.now())
	// Counted before it is watched: it may be evicted at once.
	cs.count(func(n *ConnsStats) { n.Wrapped++; n.Open++ })
	if err := w.watch(); err != nil {
		cs.count(func(n *ConnsStats) { n.Wrapped--; n.Open-- })
		return nil, err
	}
	return w, nil
}

// Listener returns a Listener over l, whose connections cs watches.
func (cs *Conns) Listener(l net.Listener) *Listener { return &Listener{under: l, conns: cs.made()} }

// Stats returns the counts.
func (cs *Conns) Stats() ConnsStats {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.mu.n
}

// Close ends the watching, and returns nil. Open connections stay open and usable, and
// will not be closed for being idle: [Conns.TakeLeftover] has them. From now on Wrap returns
// [ErrClosed]. Close waits for nothing: see [Monitor.Close]. There is no need to call it
// if all connections are closed: then nothing is left behind.
func (cs *Conns) Close() error { return cs.made().monitor.Close() }

// Shutdown does what Close does, and waits until all callbacks have returned. If ctx
// ends first it returns the error of ctx.
func (cs *Conns) Shutdown(ctx context.Context) error { return cs.made().monitor.Shutdown(ctx) }

// TakeLeftover takes the connections that were open when the watching ended, and returns
// them in no particular order. A connection is in the result of one call only: see
// [Monitor.TakeLeftover].
func (cs *Conns) TakeLeftover() iter.Seq[*Conn] {
	left := cs.made().monitor.TakeLeftover()
	return func(yield func(*Conn) bool) {
		for e := range left {
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
