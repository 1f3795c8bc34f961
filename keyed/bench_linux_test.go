package keyed_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/timer"
	"golang.org/x/sys/unix"
)

// BenchmarkSlowestRemove removes four million keys. It reports the longest removal, and
// how many took more than a millisecond, in CPU time of the thread.
func BenchmarkSlowestRemove(b *testing.B) {
	const n = 4_000_000
	for _, shards := range []int{1, 16} {
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for b.Loop() {
				b.StopTimer()
				s := timer.New(timer.WithShards(shards))
				k := keyed.New(s, func(int, int) {})
				for i := range n {
					if err := k.Set(i, i, time.Hour); err != nil {
						b.Fatal(err)
					}
				}
				runtime.GC()
				b.StartTimer()
				var slowest time.Duration
				slow := 0
				begin := threadTime(b)
				for i := range n {
					if _, ok := k.Remove(i); !ok {
						b.Fatal(i)
					}
					end := threadTime(b)
					slowest = max(slowest, end-begin)
					if end-begin > time.Millisecond {
						slow++
					}
					begin = end
				}
				b.ReportMetric(float64(slowest.Microseconds()), "µs-slowest")
				b.ReportMetric(float64(slow), "over-1ms")
				b.StopTimer()
				s.Close()
				b.StartTimer()
			}
		})
	}
}

// threadTime returns the CPU time of the thread.
func threadTime(b *testing.B) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ts.Nano())
}
