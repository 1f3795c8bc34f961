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
// which resets its timer of 30 s. One in a hundred falls silent, and its timer closes it.
// Heartbeats reports
//
//   - cpu-ns/beat: the CPU time that the timer adds to a heartbeat
//   - B/conn: heap bytes of a connection's handle, callback and timer
//   - late-ms: the longest time from a timeout to the closing of its connection
//   - lost: silent connections that were not closed
//   - wrong: connections that were closed although they sent heartbeats
func Heartbeats(b *testing.B, m Maker) {
	n := choose(1_000, 100_000, 100_000)
	timeout := choose(120*time.Millisecond, 1500*time.Millisecond, 30*time.Second)
	if mode() == "rates" {
		timeout = 30 * time.Second
	}
	b.Run("n="+Size(n), func(b *testing.B) {
		noTimersOnce.Do(func() { noTimersCPU = newHeartbeats(n, timeout).run(None).cpuPerBeat })
		var cost, bytes, late float64
		var lost, wrong int
		for b.Loop() {
			r := newHeartbeats(n, timeout).run(m)
			cost += max(0, r.cpuPerBeat-noTimersCPU)
			bytes += r.bytesPerConn
			late = max(late, r.late)
			lost += r.lost
			wrong += r.wrong
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
	noTimersOnce sync.Once
	noTimersCPU  float64 // CPU time of a heartbeat without timers, in nanoseconds
)

const (
	beatsPerTimeout = 6   // a timeout of 30 s, a heartbeat every 5 s
	silentEvery     = 100 // one connection in a hundred falls silent
)

// heartbeatsRun is a run of the workload Heartbeats. Times are relative to begin.
type heartbeatsRun struct {
	timeout  time.Duration
	orders   [2][]int32 // two random orders in which connections send heartbeats, used in turn
	begin    time.Time
	lastBeat []time.Duration // of each silent connection
	closedAt []atomic.Int64  // in nanoseconds; zero while the connection is open
}

type heartbeatsResult struct {
	cpuPerBeat, bytesPerConn, late float64 // in nanoseconds, bytes, milliseconds
	lost, wrong                    int
}

func newHeartbeats(n int, timeout time.Duration) *heartbeatsRun {
	h := &heartbeatsRun{timeout: timeout, lastBeat: make([]time.Duration, n), closedAt: make([]atomic.Int64, n)}
	rng := rand.New(rand.NewPCG(9, 10))
	for i := range h.orders {
		h.orders[i] = make([]int32, n)
		for j, conn := range rng.Perm(n) {
			h.orders[i][j] = int32(conn)
		}
	}
	return h
}

func (h *heartbeatsRun) run(m Maker) heartbeatsResult {
	n := len(h.closedAt)
	heapBefore := liveHeap()
	impl := m.New(n)
	defer impl.Close()
	h.begin = time.Now()
	closeConn := func(conn int) { h.closedAt[conn].Store(int64(time.Since(h.begin))) }
	for conn := range n {
		startFor(impl, conn, h.timeout, closeConn)
	}
	flush(impl)
	bytesPerConn := float64(liveHeap()-heapBefore) / float64(n)

	// In the first interval every connection sends a heartbeat. After that the silent
	// connections send none.
	interval := h.timeout / beatsPerTimeout
	firstBeat := time.Since(h.begin)
	cpuBefore, _ := cpuTime()
	beats := 0
	end := firstBeat + h.timeout + 2*interval
	if m.Name == None.Name || m.Name == Noted.Name {
		end = firstBeat + 2*interval // no timeout ends
	}
	for now := firstBeat; now < end; now = time.Since(h.begin) {
		for due := int(float64(now-firstBeat) / float64(interval) * float64(n)); beats < due; beats++ {
			conn := int(h.orders[beats/n%2][beats%n])
			if conn%silentEvery == 0 {
				if beats >= n {
					continue
				}
				h.lastBeat[conn] = time.Since(h.begin)
			}
			impl.Reset(conn, h.timeout)
		}
		time.Sleep(time.Millisecond)
	}
	flush(impl)
	cpuAfter, _ := cpuTime()
	r := heartbeatsResult{cpuPerBeat: float64(cpuAfter-cpuBefore) / float64(beats), bytesPerConn: bytesPerConn}
	if m.Name == None.Name || m.Name == Noted.Name {
		return r
	}
	for giveUp := time.Now().Add(2 * time.Second); h.silentOpen() > 0 && time.Now().Before(giveUp); {
		time.Sleep(time.Millisecond)
	}
	r.lost = h.silentOpen()
	for conn := range n {
		closedAt := time.Duration(h.closedAt[conn].Load())
		switch {
		case closedAt == 0:
		case conn%silentEvery != 0:
			r.wrong++
		default:
			r.late = max(r.late, milliseconds(closedAt-h.lastBeat[conn]-h.timeout))
		}
	}
	runtime.KeepAlive(impl)
	return r
}

// silentOpen returns how many silent connections have not been closed.
func (h *heartbeatsRun) silentOpen() int {
	n := 0
	for conn := 0; conn < len(h.closedAt); conn += silentEvery {
		if h.closedAt[conn].Load() == 0 {
			n++
		}
	}
	return n
}
