package benchmarks

import (
	"context"
	"time"

	"github.com/tickless/tickless/idle"
)

// Monitor is package idle. Its Reset always renews the original timeout, so it can run only
// the workload [Heartbeats].
var Monitor = Maker{Name: "idle.Monitor", New: newMonitor}

// Noted only stores the time of each connection's last heartbeat and never calls a
// callback. It shows the least that Heartbeats can cost.
var Noted = Maker{Name: "noted", New: func(slots int) Impl {
	return &noted{begin: time.Now(), lastBeat: Touched[*[6]int64](slots)}
}}

// None does nothing. It shows what a workload costs without timers.
var None = Maker{Name: "none", New: func(int) Impl { return none{} }}

type none struct{}

func (none) Start(int, time.Duration, func())     {}
func (none) Stop(int) bool                        { return true }
func (none) Reset(slot int, _ time.Duration) bool { return true }
func (none) Close()                               {}

type noted struct {
	begin    time.Time
	lastBeat []*[6]int64 // only the first number is used: nanoseconds since begin
}

func (n *noted) Start(slot int, _ time.Duration, _ func()) { n.lastBeat[slot] = new([6]int64) }

func (n *noted) Stop(int) bool { return true }

func (n *noted) Reset(slot int, _ time.Duration) bool {
	n.lastBeat[slot][0] = int64(time.Since(n.begin))
	return true
}

func (n *noted) Close() {}

type monitor struct {
	monitor *idle.Monitor[int]
	onIdle  func(slot int) // the callback of every slot
	entries []*idle.Entry[int]
}

func newMonitor(slots int) Impl {
	// The workload's timeout is shorter in quick mode and under -short, so the tick is too.
	tick := choose(100*time.Microsecond, idle.DefaultTick/20, idle.DefaultTick)
	m := &monitor{entries: Touched[*idle.Entry[int]](slots)}
	m.monitor = idle.New(func(slot int, _ time.Time) { m.onIdle(slot) }, idle.WithTick(tick))
	return m
}

func (m *monitor) StartFor(slot int, d time.Duration, f func(slot int)) {
	m.onIdle = f // no lock: one goroutine starts all timers before the first is due
	e, err := m.monitor.Watch(slot, d)
	if err != nil {
		panic(err) // the monitor is not closed and has no limit
	}
	m.entries[slot] = e
}

func (*monitor) Start(int, time.Duration, func()) {
	panic("benchmarks: Monitor has no Start, only StartFor")
}

func (m *monitor) Stop(slot int) bool { return m.entries[slot].Stop() }

func (m *monitor) Reset(slot int, _ time.Duration) bool { return m.entries[slot].Touch() }

func (m *monitor) Close() {
	m.monitor.Close()
	if err := m.monitor.Shutdown(context.Background()); err != nil {
		panic(err)
	}
}
