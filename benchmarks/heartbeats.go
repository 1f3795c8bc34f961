package benchmarks

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
)

// Heartbeats is a server with a hundred thousand connections, each of which is closed
// after 30 s of silence. Each sends a heartbeat every 5 s on average, which resets its
// timer; one in a hundred falls silent. It reports
//
//   - cpu-ns/beat: user and system time for a heartbeat, including all work of the
//     timers, minus the time for a heartbeat without timers;
//   - B/conn: live heap bytes for a connection's timeout: handle, callback and timer;
//   - late-ms: how long after its timeout the last silent connection was closed;
//   - lost, wrong: silent connections that were not closed, and others that were.
//
// Under -short and in quick mode all times are shorter by a factor, including ticks
// that can be chosen.
func Heartbeats(b *testing.B, m Maker) {
	n := choose(1_000, 100_000, 100_000)
	timeout := choose(120*time.Millisecond, 1500*time.Millisecond, 30*time.Second)
	if mode() == "rates" {
		timeout = 30 * time.Second
	}
	b.Run("n="+Size(n), func(b *testing.B) {
		heartbeatsAlone.Do(func() { heartbeatsOwn = newHeartbeats(n, timeout).run(None).perBeat })
		var cost, bytes, late float64
		var lost, wrong int
		for b.Loop() {
			r := newHeartbeats(n, timeout).run(m)
			cost += max(0, r.perBeat-heartbeatsOwn)
			bytes += r.bytes
			late = max(late, r.late)
			lost += r.lost
			wrong += r.wrong
		}
		b.ReportMetric(0, "ns/op") // says nothing: hidden
		b.ReportMetric(cost/float64(b.N), "cpu-ns/beat")
		b.ReportMetric(bytes/float64(b.N), "B/conn")
		b.ReportMetric(late, "late-ms")
		b.ReportMetric(float64(lost), "lost")
		b.ReportMetric(float64(wrong), "wrong")
	})
}

// heartbeatsOwn is the time for a heartbeat without a timer, in nanoseconds.
var (
	heartbeatsAlone sync.Once
	heartbeatsOwn   float64
)

const (
	beatsPerTimeout = 6   // 30 s to 5 s
	oneSilentIn     = 100 // connections
)

// heartbeats is the workload. The connections send their heartbeats in two random
// orders, alternately, so that two heartbeats of one connection are up to twice the
// average apart. Times are relative to base.
type heartbeats struct {
	timeout time.Duration
	orders  [2][]int32
	base    time.Time
	last    []time.Duration // each silent connection's last heartbeat
	closed  []atomic.Int64  // when, in nanoseconds
}

type heartbeatsResult struct {
	perBeat, bytes, late float64
	lost, wrong          int
}

func newHeartbeats(n int, timeout time.Duration) *heartbeats {
	h := &heartbeats{timeout: timeout, last: make([]time.Duration, n), closed: make([]atomic.Int64, n)}
	rng := rand.New(rand.NewPCG(9, 10))
	for i := range h.orders {
		h.orders[i] = make([]int32, n)
		for j, conn := range rng.Perm(n) {
			h.orders[i][j] = int32(conn)
		}
	}
	return h
}

func (h *heartbeats) run(m Maker) heartbeatsResult {
	n := len(h.closed)
	before := liveHeap()
	impl := m.New(n)
	defer impl.Close()
	h.base = time.Now()
	closeConn := func(conn int) { h.closed[conn].Store(int64(time.Since(h.base))) }
	for conn := range n {
		startFor(impl, conn, h.timeout, closeConn)
	}
	flush(impl)
	bytes := float64(liveHeap()-before) / float64(n)

	// All connections send their first heartbeat at once, so that none waits long for
	// it. The silent ones fall silent after a sixth of the timeout.
	interval := h.timeout / beatsPerTimeout
	begin := time.Since(h.base)
	cpuBefore, _ := cpuTime()
	beats := 0
	end := begin + h.timeout + 2*interval
	if m.Name == None.Name || m.Name == Noted.Name {
		end = begin + 2*interval // nothing falls due
	}
	for now := begin; now < end; now = time.Since(h.base) {
		for due := int(float64(now-begin) / float64(interval) * float64(n)); beats < due; beats++ {
			conn := int(h.orders[beats/n%2][beats%n])
			if conn%oneSilentIn == 0 {
				if beats >= n {
					continue
				}
				h.last[conn] = time.Since(h.base)
			}
			impl.Reset(conn, h.timeout)
		}
		time.Sleep(time.Millisecond)
	}
	flush(impl)
	cpuAfter, _ := cpuTime()
	r := heartbeatsResult{perBeat: float64(cpuAfter-cpuBefore) / float64(beats), bytes: bytes}
	if m.Name == None.Name || m.Name == Noted.Name {
		return r
	}
	for grace := time.Now().Add(2 * time.Second); h.open() > 0 && time.Now().Before(grace); {
		time.Sleep(time.Millisecond)
	}
	r.lost = h.open()
	for conn := range n {
		at := time.Duration(h.closed[conn].Load())
		switch {
		case at == 0:
		case conn%oneSilentIn != 0:
			r.wrong++
		default:
			r.late = max(r.late, milliseconds(at-h.last[conn]-h.timeout))
		}
	}
	runtime.KeepAlive(impl)
	return r
}

// open returns how many silent connections have not been closed.
func (h *heartbeats) open() int {
	n := 0
	for conn := 0; conn < len(h.closed); conn += oneSilentIn {
		if h.closed[conn].Load() == 0 {
			n++
		}
	}
	return n
}
