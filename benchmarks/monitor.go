package benchmarks

import (
	"context"
	"time"

	"github.com/tickless/tickless/idle"
)

// Monitor is package idle, which only provides timeouts that activity renews. So it
// runs [Heartbeats] alone: its Reset is a touch, which keeps the original timeout.
var Monitor = Maker{Name: "idle.Monitor", New: newMonitor}

// Noted is the minimal cost of a timeout that activity renews: each connection has an
// object with the time of its last heartbeat. No timeout ever falls due.
var Noted = Maker{Name: "noted", New: func(slots int) Impl {
	return &noted{base: time.Now(), last: Touched[*[6]int64](slots)}
}}

// None has no timers: it shows the cost of a workload itself.
var None = Maker{Name: "none", New: func(int) Impl { return none{} }}

type none struct{}

func (none) Start(int, time.Duration, func())     {}
func (none) Stop(int) bool                        { return true }
func (none) Reset(slot int, _ time.Duration) bool { return true }
func (none) Close()                               {}

type noted struct {
	base time.Time
	last []*[6]int64
}

func (n *noted) Start(slot int, _ time.Duration, _ func()) { n.last[slot] = new([6]int64) }

func (n *noted) Stop(int) bool { return true }

func (n *noted) Reset(slot int, _ time.Duration) bool {
	n.last[slot][0] = int64(time.Since(n.base))
	return true
}

func (n *noted) Close() {}

type monitor struct {
	m       *idle.Monitor[int]
	closed  func(slot int)
	entries []*idle.Entry[int]
}

func newMonitor(slots int) Impl {
	// The tick is the same fraction of the timeout as by default.
	tick := choose(100*time.Microsecond, idle.DefaultTick/20, idle.DefaultTick)
	m := &monitor{entries: Touched[*idle.Entry[int]](slots)}
	m.m = idle.New(func(slot int, _ time.Time) { m.closed(slot) }, idle.WithTick(tick))
	return m
}

func (m *monitor) StartFor(slot int, d time.Duration, f func(slot int)) {
	m.closed = f // the same each time, from one goroutine, before any is due
	e, err := m.m.Watch(slot, d)
	if err != nil {
		panic(err) // it is neither closed nor bounded
	}
	m.entries[slot] = e
}

func (*monitor) Start(int, time.Duration, func()) { panic("benchmarks: a Monitor has one callback") }

func (m *monitor) Stop(slot int) bool { return m.entries[slot].Stop() }

func (m *monitor) Reset(slot int, _ time.Duration) bool { return m.entries[slot].Touch() }

func (m *monitor) Close() {
	m.m.Close()
	if err := m.m.Shutdown(context.Background()); err != nil {
		panic(err)
	}
}
