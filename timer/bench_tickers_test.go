//go:build unix

package timer_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/timer"
)

// BenchmarkTickers runs 10,000 tickers with periods of 10 to 100 ms for five seconds, and
// reports the CPU time. With read=true, a goroutine receives from each ticker.
func BenchmarkTickers(b *testing.B) {
	for _, read := range []bool{true, false} {
		b.Run(fmt.Sprintf("read=%v/impl=time", read), func(b *testing.B) {
			runTickers(b, read, func(d time.Duration) (<-chan time.Time, func()) {
				t := time.NewTicker(d)
				return t.C, t.Stop
			})
		})
		b.Run(fmt.Sprintf("read=%v/impl=tickless", read), func(b *testing.B) {
			s := timer.New()
			defer s.Close()
			runTickers(b, read, func(d time.Duration) (<-chan time.Time, func()) {
				t := s.NewTicker(d)
				return t.C, t.Stop
			})
		})
	}
}

func runTickers(b *testing.B, read bool, start func(time.Duration) (<-chan time.Time, func())) {
	n, length := 10_000, 5*time.Second
	if testing.Short() { // only a check that the benchmark works
		n, length = 1_000, 200*time.Millisecond
	}
	for b.Loop() {
		done := make(chan struct{})
		ended := make(chan struct{})
		var ticks, early atomic.Int64
		stops := make([]func(), n)
		for i := range n {
			period := 10*time.Millisecond + time.Duration(i)*90*time.Millisecond/time.Duration(n)
			first := time.Now().Add(period)
			c, stop := start(period)
			stops[i] = stop
			if !read {
				continue
			}
			go func() {
				for {
					select {
					case <-c:
						ticks.Inc()
						if time.Now().Before(first) {
							early.Inc()
						}
					case <-done:
						ended <- struct{}{}
						return
					}
				}
			}()
		}
		before := cpuTime(b)
		time.Sleep(length)
		b.ReportMetric((cpuTime(b) - before).Seconds(), "cpu-s")
		close(done)
		for _, stop := range stops {
			stop()
		}
		if read {
			for range n {
				<-ended
			}
		}
		b.ReportMetric(float64(ticks.Load()), "ticks")
		b.ReportMetric(float64(early.Load()), "early")
	}
}

func cpuTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
