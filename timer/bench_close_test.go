package timer_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/tickless/tickless/timer"
)

// BenchmarkClose_Unused closes a Scheduler with very many pending timers and drops them:
// how long it takes, and how much it allocates.
func BenchmarkClose_Unused(b *testing.B) {
	const n = 3_000_000
	for b.Loop() {
		b.StopTimer()
		s := timer.New()
		f := func() {}
		for i := range n {
			if _, err := s.Start(time.Hour+time.Duration(i)*time.Microsecond, f); err != nil {
				b.Fatal(err)
			}
		}
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b.StartTimer()
		s.Close()
		b.StopTimer()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/1e6, "MB/close")
		b.StartTimer()
	}
	b.ReportMetric(0, "B/op")
}
