//go:build unix

package idle_test

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/tickless/tickless/idle"
)

// BenchmarkHeartbeats measures the CPU time that timeouts cost per heartbeat. 100,000
// connections send heartbeats, and none falls silent.
//
// It models a timeout of 30 s, a heartbeat every 5 s and the default tick. To save time,
// all three are divided by ten.
func BenchmarkHeartbeats(b *testing.B) {
	conns, timeout := 100_000, 3*time.Second
	if testing.Short() { // only a check that the benchmark works
		conns, timeout = 1_000, 300*time.Millisecond
	}
	every := timeout / 6
	order := rand.Perm(conns)
	// run calls heartbeat for the connections, in random order, for three times the
	// timeout. It does not measure the first third.
	run := func(before func(), heartbeat func(conn int)) (cpu time.Duration, heartbeats int) {
		begin := time.Now()
		var cpu0 time.Duration
		n, from := 0, 0
		for t := time.Duration(0); t < 3*timeout; t = time.Since(begin) {
			if from == 0 && t > timeout {
				cpu0, from = cpuTime(), n
			}
			before()
			for due := int(t * time.Duration(conns) / every); n < due; n++ {
				heartbeat(order[n%conns])
			}
			time.Sleep(time.Millisecond)
		}
		return cpuTime() - cpu0, n - from
	}
	idleness, n := run(func() {}, func(int) {}) // the CPU time of the loop itself, which report subtracts
	own := float64(idleness) / float64(n)
	report := func(b *testing.B, cpu time.Duration, n int) {
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(max(0, float64(cpu)/float64(n)-own), "cpu-ns/heartbeat")
	}
	monitored := func(b *testing.B) (*idle.Monitor[int], []*idle.Entry[int]) {
		m := idle.New(func(int, time.Time) { b.Error("evicted") }, idle.WithTick(idle.DefaultTick/10))
		es := make([]*idle.Entry[int], conns)
		for i := range es {
			es[i], _ = m.Watch(i, timeout)
		}
		b.Cleanup(func() { m.Close() })
		return m, es
	}
	b.Run("impl=touchAt", func(b *testing.B) {
		m, es := monitored(b)
		var at idle.Moment
		cpu, n := run(func() { at = m.Now() }, func(conn int) { es[conn].TouchAt(at) })
		report(b, cpu, n)
	})
	b.Run("impl=touch", func(b *testing.B) {
		_, es := monitored(b)
		cpu, n := run(func() {}, func(conn int) { es[conn].Touch() })
		report(b, cpu, n)
	})
	b.Run("impl=time.Timer", func(b *testing.B) {
		ts := make([]*time.Timer, conns)
		for i := range ts {
			ts[i] = time.AfterFunc(timeout, func() { b.Error("evicted") })
		}
		cpu, n := run(func() {}, func(conn int) { ts[conn].Reset(timeout) })
		report(b, cpu, n)
		for _, t := range ts {
			t.Stop()
		}
	})
}

func cpuTime() time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		panic(err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
