package benchmarks

import (
	"runtime"
	"testing"
	"time"
)

// Idle leaves a hundred thousand timers pending that are far from due, in a
// process of its own that does nothing else. It reports
//
//   - cpu-us/s: user and system time a second;
//   - switches/s: context switches a second.
//
// Run it on [None] too, to know what a process takes that has no timers.
func Idle(b *testing.B, m Maker) {
	n := choose(1_000, 100_000, 100_000)
	span := choose(50*time.Millisecond, time.Second, 10*time.Second)
	b.Run("n="+Size(n), func(b *testing.B) {
		reportProcess(b, func() map[string]float64 {
			impl := m.New(n)
			defer impl.Close()
			fill(impl, n)
			runtime.GC()
			time.Sleep(span / 5) // the runtime, too, has to come to rest
			cpu, switches, ok := usage()
			if !ok {
				return nil
			}
			time.Sleep(span)
			cpuAfter, switchesAfter, _ := usage()
			return map[string]float64{
				"cpu-us/s":   microseconds(cpuAfter-cpu) / span.Seconds(),
				"switches/s": float64(switchesAfter-switches) / span.Seconds(),
			}
		})
	})
}

// None is no implementation at all: what a workload costs by itself.
var None = Maker{Name: "none", New: func(int) Impl { return none{} }}

type none struct{}

func (none) Start(int, time.Duration, func())     {}
func (none) Stop(int) bool                        { return true }
func (none) Reset(slot int, _ time.Duration) bool { return true }
func (none) Close()                               {}
