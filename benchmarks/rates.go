package benchmarks

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/timer"
)

// TicklessSlack is [Tickless] with timers that may fire up to 10 ms late.
var TicklessSlack = Maker{Name: "tickless-slack", New: func(slots int) Impl {
	const slack = 10 * time.Millisecond
	return &tickless{timer.New(timer.WithSlack(0, slack, slack)), Touched[timer.Handle](slots)}
}}

// Rates measures timers with random deadlines in a process that does nothing else. 10 to
// 100,000 are due each second. Besides scatteredTimers.figures, it reports
//
//   - cpu-ms/s: milliseconds of CPU time per second
//   - switches/s: context switches per second
func Rates(b *testing.B, m Maker) {
	for _, rate := range choose([]int{100}, []int{10, 100, 1000, 10_000, 100_000}, []int{10, 100, 1000, 10_000, 100_000}) {
		b.Run("rate="+Size(rate), func(b *testing.B) {
			forEachProcCount(b, func() map[string]float64 { return measureRate(m, rate) })
		})
	}
}

func measureRate(m Maker, rate int) map[string]float64 {
	extraDelay := choose(50*time.Millisecond, time.Second, time.Second)
	deadlineSpan := choose(50*time.Millisecond, 2*time.Second, 4*time.Second)
	if rate < 100 {
		deadlineSpan *= 3
	}
	n := max(1, int(float64(rate)*deadlineSpan.Seconds()))
	l := newScatteredTimers(n, deadlineSpan)
	for i := range l.deadlines {
		l.deadlines[i] += extraDelay
	}
	var usageBefore, startTime = currentUsage(), time.Now()
	l.onAllStarted = func() {
		runtime.GC()
		usageBefore, startTime = currentUsage(), time.Now()
	}
	l.startAndWait(m)
	usageAfter, elapsed := currentUsage(), time.Since(startTime).Seconds()
	figures := l.figures()
	if usageBefore.ok {
		figures["cpu-ms/s"] = milliseconds(usageAfter.cpuTime-usageBefore.cpuTime) / elapsed
		figures["switches/s"] = float64(usageAfter.switches-usageBefore.switches) / elapsed
	}
	return figures
}

type processUsage struct {
	cpuTime  time.Duration // user and system time
	switches int64         // context switches
	ok       bool          // false if the system does not report them
}

func currentUsage() (u processUsage) {
	u.cpuTime, u.switches, u.ok = readUsage()
	return u
}

// Tickers measures n tickers with the same period. A goroutine receives the ticks of each.
// It reports
//
//   - cpu-ms/s: milliseconds of CPU time per second
//   - ticks: received ticks divided by the ticks that were due
func Tickers(b *testing.B) {
	for _, m := range []struct {
		name      string
		newTicker func(d time.Duration) (c <-chan time.Time, stop func())
	}{
		{"time", func(d time.Duration) (<-chan time.Time, func()) {
			t := time.NewTicker(d)
			return t.C, t.Stop
		}},
		{"tickless", func(d time.Duration) (<-chan time.Time, func()) {
			t := timer.NewTicker(d)
			return t.C, t.Stop
		}},
	} {
		b.Run("impl="+m.name, func(b *testing.B) {
			n := choose(100, 10_000, 10_000)
			for _, period := range choose([]time.Duration{10 * time.Millisecond},
				[]time.Duration{100 * time.Millisecond, time.Second}, []time.Duration{100 * time.Millisecond, time.Second}) {
				b.Run(fmt.Sprintf("n=%s/period=%v", Size(n), period), func(b *testing.B) {
					forEachProcCount(b, func() map[string]float64 { return measureTickers(n, period, m.newTicker) })
				})
			}
		})
	}
}

func measureTickers(n int, period time.Duration, newTicker func(time.Duration) (<-chan time.Time, func())) map[string]float64 {
	measuredTime := choose(100*time.Millisecond, 3*time.Second, 5*time.Second)
	var ticks atomic.Int64
	quit := make(chan struct{})
	for range n {
		c, stop := newTicker(period)
		go func() {
			defer stop()
			for {
				select {
				case <-c:
					ticks.Inc()
				case <-quit:
					return
				}
			}
		}()
	}
	usageBefore, startTime, ticksBefore := currentUsage(), time.Now(), ticks.Load()
	time.Sleep(measuredTime)
	usageAfter, elapsed := currentUsage(), time.Since(startTime)
	receivedTicks := ticks.Load() - ticksBefore
	close(quit)
	figures := map[string]float64{"ticks": float64(receivedTicks) / (float64(n) * float64(elapsed/period))}
	if usageBefore.ok {
		figures["cpu-ms/s"] = milliseconds(usageAfter.cpuTime-usageBefore.cpuTime) / elapsed.Seconds()
	}
	return figures
}
