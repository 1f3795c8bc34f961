package benchmarks

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
)

// Heartbeats simulates a server with 100,000 connections. Each sends a heartbeat every 5 s,
// which resets its timer of 30 s. One connection in a hundred falls silent, and its timer
// closes it. Heartbeats reports
//
//   - cpu-ns/beat: the CPU time that the timer adds to a heartbeat
//   - B/conn: heap bytes of a connection's handle, callback and timer
//   - late-ms: the longest time from a timeout to the closing of its connection
//   - lost: silent connections that were not closed
//   - wrong: connections that were closed although they sent heartbeats
func Heartbeats(b *testing.B, m Maker) {
	n := choose(1_000, 100_000, 100_000)
	timeout := choose(120*time.Millisecond, 1500*time.Millisecond, 30*time.Second)
	if benchMode() == "rates" {
		timeout = 30 * time.Second
	}
	b.Run("n="+Size(n), func(b *testing.B) {
		cpuWithoutTimersOnce.Do(func() { cpuWithoutTimers = newHeartbeatsRun(n, timeout).simulate(None).cpuPerHeartbeat })
		var cost, bytes, late float64
		var lost, wrong int
		for b.Loop() {
			r := newHeartbeatsRun(n, timeout).simulate(m)
			cost += max(0, r.cpuPerHeartbeat-cpuWithoutTimers)
			bytes += r.bytesPerConn
			late = max(late, r.maxLateness)
			lost += r.lostCount
			wrong += r.wrongCount
		}
		b.ReportMetric(0, "ns/op") // 0 hides it: it includes the waiting
		b.ReportMetric(cost/float64(b.N), "cpu-ns/beat")
		b.ReportMetric(bytes/float64(b.N), "B/conn")
		b.ReportMetric(late, "late-ms")
		b.ReportMetric(float64(lost), "lost")
		b.ReportMetric(float64(wrong), "wrong")
	})
}

var (
	cpuWithoutTimersOnce sync.Once
	cpuWithoutTimers     float64 // CPU time of a heartbeat without timers, in nanoseconds
)

const (
	beatsPerTimeout = 6   // a timeout of 30 s, a heartbeat every 5 s
	silentEvery     = 100 // one connection in a hundred falls silent
)

// heartbeatsRun is a run of the workload Heartbeats. Times are relative to startTime.
type heartbeatsRun struct {
	timeout         time.Duration
	sendOrders      [2][]int32 // two random orders in which connections send heartbeats, used in turn
	startTime       time.Time
	lastHeartbeatAt []time.Duration // of each silent connection
	closedAt        []atomic.Int64  // in nanoseconds; zero while the connection is open
}

type heartbeatsResult struct {
	cpuPerHeartbeat, bytesPerConn, maxLateness float64 // in nanoseconds, bytes, milliseconds
	lostCount, wrongCount                      int
}

func newHeartbeatsRun(n int, timeout time.Duration) *heartbeatsRun {
	h := &heartbeatsRun{timeout: timeout, lastHeartbeatAt: make([]time.Duration, n), closedAt: make([]atomic.Int64, n)}
	rng := rand.New(rand.NewPCG(9, 10))
	for i := range h.sendOrders {
		h.sendOrders[i] = make([]int32, n)
		for j, conn := range rng.Perm(n) {
			h.sendOrders[i][j] = int32(conn)
		}
	}
	return h
}

func (h *heartbeatsRun) simulate(m Maker) heartbeatsResult {
	n := len(h.closedAt)
	heapBefore := liveHeapBytes()
	impl := m.New(n)
	defer impl.Close()
	h.startTime = time.Now()
	closeConn := func(conn int) { h.closedAt[conn].Store(int64(time.Since(h.startTime))) }
	for conn := range n {
		startWithSlot(impl, conn, h.timeout, closeConn)
	}
	flush(impl)
	bytesPerConn := float64(liveHeapBytes()-heapBefore) / float64(n)

	// In the first interval every connection sends a heartbeat. After that the silent
	// connections send none.
	interval := h.timeout / beatsPerTimeout
	firstHeartbeatAt := time.Since(h.startTime)
	cpuBefore, _ := cpuTime()
	heartbeatCount := 0
	endAt := firstHeartbeatAt + h.timeout + 2*interval
	if m.Name == None.Name || m.Name == Noted.Name {
		endAt = firstHeartbeatAt + 2*interval // no timeout ends
	}
	for now := firstHeartbeatAt; now < endAt; now = time.Since(h.startTime) {
		for dueCount := int(float64(now-firstHeartbeatAt) / float64(interval) * float64(n)); heartbeatCount < dueCount; heartbeatCount++ {
			conn := int(h.sendOrders[heartbeatCount/n%2][heartbeatCount%n])
			if conn%silentEvery == 0 {
				if heartbeatCount >= n {
					continue
				}
				h.lastHeartbeatAt[conn] = time.Since(h.startTime)
			}
			impl.Reset(conn, h.timeout)
		}
		time.Sleep(time.Millisecond)
	}
	flush(impl)
	cpuAfter, _ := cpuTime()
	r := heartbeatsResult{cpuPerHeartbeat: float64(cpuAfter-cpuBefore) / float64(heartbeatCount), bytesPerConn: bytesPerConn}
	if m.Name == None.Name || m.Name == Noted.Name {
		return r
	}
	for giveUp := time.Now().Add(2 * time.Second); h.countOpenSilent() > 0 && time.Now().Before(giveUp); {
		time.Sleep(time.Millisecond)
	}
	r.lostCount = h.countOpenSilent()
	for conn := range n {
		closedAt := time.Duration(h.closedAt[conn].Load())
		switch {
		case closedAt == 0:
		case conn%silentEvery != 0:
			r.wrongCount++
		default:
			r.maxLateness = max(r.maxLateness, milliseconds(closedAt-h.lastHeartbeatAt[conn]-h.timeout))
		}
	}
	runtime.KeepAlive(impl)
	return r
}

// countOpenSilent returns how many silent connections have not been closed.
func (h *heartbeatsRun) countOpenSilent() int {
	n := 0
	for conn := 0; conn < len(h.closedAt); conn += silentEvery {
		if h.closedAt[conn].Load() == 0 {
			n++
		}
	}
	return n
}
