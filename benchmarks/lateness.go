package benchmarks

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
)

// Lateness starts a thousand timers for each second to come, at random, and
// tells how late their callbacks run, by the clock that the caller read before
// it started them: in a program that is idle, and in one whose procs are all
// busy. It reports
//
//   - p50-ms, p99-ms, max-ms: how late they ran;
//   - early, lost: timers, which should be none;
//   - cpu-ms/s: user and system time a second of waiting, if idle.
func Lateness(b *testing.B, m Maker) {
	for _, load := range []string{"idle", "busy"} {
		b.Run("load="+load, func(b *testing.B) {
			var (
				late   []float64
				lost   int
				cpu    time.Duration
				hasCPU bool
				span   = choose(50*time.Millisecond, time.Second, 5*time.Second)
			)
			for b.Loop() {
				stop := func() {}
				if load == "busy" {
					stop = keepBusy(runtime.GOMAXPROCS(0))
				}
				l := newScattered(max(10, int(span/time.Millisecond)), span)
				before, _ := cpuTime()
				l.run(m)
				after, ok := cpuTime()
				stop()
				ran, missing := l.lateness()
				late, lost = append(late, ran...), lost+missing
				cpu, hasCPU = cpu+after-before, ok
			}
			b.ReportMetric(0, "ns/op") // says nothing: hidden
			if len(late) == 0 {
				late = []float64{milliseconds(scatterGrace)}
			}
			b.ReportMetric(quantile(late, 0.5), "p50-ms")
			b.ReportMetric(quantile(late, 0.99), "p99-ms")
			b.ReportMetric(quantile(late, 1), "max-ms")
			b.ReportMetric(float64(countEarly(late)), "early")
			b.ReportMetric(float64(lost), "lost")
			if hasCPU && load == "idle" {
				b.ReportMetric(milliseconds(cpu)/(float64(b.N)*(span+scatterLead).Seconds()), "cpu-ms/s")
			}
		})
	}
}

const (
	scatterLead  = 50 * time.Millisecond // before the first falls due
	scatterGrace = 5 * time.Second       // after which the rest is lost
)

// scattered is a number of timers that fall due at random. Times count from
// base.
type scattered struct {
	base time.Time
	due  []time.Duration
	ran  []atomic.Int64 // nanoseconds; zero until the callback has run
	todo atomic.Int32
	done chan struct{}

	grace   time.Duration // after which a callback counts as lost; 0: scatterGrace
	started func()        // is called when all timers have been started, if not nil
}

func newScattered(n int, span time.Duration) *scattered {
	s := &scattered{due: make([]time.Duration, n), ran: make([]atomic.Int64, n), done: make(chan struct{})}
	s.todo.Store(int32(n))
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range s.due {
		s.due[i] = scatterLead + time.Duration(rng.Int64N(int64(span)))
	}
	return s
}

// run starts the timers and waits for their callbacks.
func (s *scattered) run(m Maker) {
	impl := m.New(len(s.due))
	defer impl.Close()
	s.base = time.Now()
	for i, due := range s.due {
		// The implementation reads its clock after this one is read, so that
		// due is never after the true deadline.
		impl.Start(i, due-time.Since(s.base), func() {
			s.ran[i].Store(int64(time.Since(s.base)))
			if s.todo.Dec() == 0 {
				close(s.done)
			}
		})
	}
	if s.started != nil {
		s.started()
	}
	grace := scatterGrace
	if s.grace > 0 {
		grace = s.grace
	}
	var last time.Duration
	for _, due := range s.due {
		last = max(last, due)
	}
	select {
	case <-s.done:
	case <-time.After(last + grace):
	}
}

// lateness returns how late the callbacks ran, in milliseconds, and how many did
// not.
func (s *scattered) lateness() (late []float64, lost int) {
	for i := range s.due {
		ran := time.Duration(s.ran[i].Load())
		if ran == 0 {
			lost++
			continue
		}
		late = append(late, milliseconds(ran-s.due[i]))
	}
	return late, lost
}

func countEarly(late []float64) int {
	n := 0
	for _, l := range late {
		if l < 0 {
			n++
		}
	}
	return n
}

// keepBusy runs n goroutines that compute, until stop is called.
func keepBusy(n int) (stop func()) {
	var quit atomic.Bool
	var wg sync.WaitGroup
	for g := range n {
		wg.Go(func() {
			for rng := xorshift(g + 1); !quit.Load(); {
				for range 1000 {
					rng.below(2)
				}
			}
		})
	}
	return func() {
		quit.Store(true)
		wg.Wait()
	}
}
