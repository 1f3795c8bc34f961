package benchmarks

import (
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/atomic"
)

const (
	scatterFirstDeadline = 50 * time.Millisecond
	scatterGracePeriod   = 5 * time.Second
)

// scatteredTimers is a set of timers, usually with random deadlines. Each slice has one
// element per timer. Times are relative to startTime.
type scatteredTimers struct {
	startTime time.Time
	deadlines []time.Duration
	ranAt     []atomic.Int64 // nanoseconds; zero until the callback has run
	todo      atomic.Int32   // callbacks that have not run
	done      chan struct{}  // closed when all have run

	gracePeriod  time.Duration // how long after the last deadline a missing callback counts as lost
	onAllStarted func()        // called when all timers have been started; may be nil
}

func newScatteredTimers(n int, span time.Duration) *scatteredTimers {
	s := &scatteredTimers{deadlines: make([]time.Duration, n), ranAt: make([]atomic.Int64, n), done: make(chan struct{}), gracePeriod: scatterGracePeriod}
	s.todo.Store(int32(n))
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range s.deadlines {
		s.deadlines[i] = scatterFirstDeadline + time.Duration(rng.Int64N(int64(span)))
	}
	return s
}

// startAndWait starts the timers and waits until their callbacks have run or are lost.
func (s *scatteredTimers) startAndWait(m Maker) {
	impl := m.New(len(s.deadlines))
	defer impl.Close()
	s.startTime = time.Now()
	for i, deadline := range s.deadlines {
		// Start reads the clock after this delay is computed. So the timer is due
		// at the deadline or later, not earlier.
		impl.Start(i, deadline-time.Since(s.startTime), func() {
			s.ranAt[i].Store(int64(time.Since(s.startTime)))
			s.countDone()
		})
	}
	if s.onAllStarted != nil {
		s.onAllStarted()
	}
	var last time.Duration
	for _, deadline := range s.deadlines {
		last = max(last, deadline)
	}
	select {
	case <-s.done:
	case <-time.After(last + s.gracePeriod):
	}
}

// countDone counts a callback that has run.
func (s *scatteredTimers) countDone() {
	if s.todo.Dec() == 0 {
		close(s.done)
	}
}

// measureLateness returns how late callbacks ran, in milliseconds, and how many are lost.
// If any are lost, late also contains gracePeriod.
func (s *scatteredTimers) measureLateness() (late []float64, lost int) {
	for i := range s.deadlines {
		ranAt := time.Duration(s.ranAt[i].Load())
		if ranAt == 0 {
			lost++
			continue
		}
		late = append(late, milliseconds(ranAt-s.deadlines[i]))
	}
	if lost > 0 {
		late = append(late, milliseconds(s.gracePeriod))
	}
	return late, lost
}

// figures returns how late callbacks ran (p50-ms, p99-ms), how many ran too early (early),
// and how many never ran (lost).
func (s *scatteredTimers) figures() map[string]float64 {
	late, lost := s.measureLateness()
	return map[string]float64{
		"p50-ms": quantile(late, 0.5), "p99-ms": quantile(late, 0.99),
		"early": float64(countEarly(late)), "lost": float64(lost),
	}
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

// keepBusy starts n goroutines that compute until stop is called.
func keepBusy(n int) (stop func()) {
	var quit atomic.Bool
	var wg sync.WaitGroup
	for g := range n {
		wg.Go(func() {
			for rng := xorshift(g + 1); !quit.Load(); {
				for range 1000 {
					rng.intN(2)
				}
			}
		})
	}
	return func() {
		quit.Store(true)
		wg.Wait()
	}
}
