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
	return &heartbeatRecorder{startTime: time.Now(), lastHeartbeats: Touched[*[6]int64](slots)}
}}

// None does nothing. It shows what a workload costs without timers.
var None = Maker{Name: "none", New: func(int) Impl { return noTimers{} }}

type noTimers struct{}

func (noTimers) Start(int, time.Duration, func())     {}
func (noTimers) Stop(int) bool                        { return true }
func (noTimers) Reset(slot int, _ time.Duration) bool { return true }
func (noTimers) Close()                               {}

type heartbeatRecorder struct {
	startTime      time.Time
	lastHeartbeats []*[6]int64 // only the first number is used: nanoseconds since startTime
}

func (n *heartbeatRecorder) Start(slot int, _ time.Duration, _ func()) {
	n.lastHeartbeats[slot] = new([6]int64)
}

func (n *heartbeatRecorder) Stop(int) bool { return true }

func (n *heartbeatRecorder) Reset(slot int, _ time.Duration) bool {
	n.lastHeartbeats[slot][0] = int64(time.Since(n.startTime))
	return true
}

func (n *heartbeatRecorder) Close() {}

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
