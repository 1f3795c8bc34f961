package benchmarks

import (
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/atomic"
)

const (
	scatterFirstDue = 50 * time.Millisecond
	scatterGrace    = 5 * time.Second
)

// scatteredTimers is a set of timers, usually with random deadlines. Each slice has one
// element per timer. Times are relative to begin.
type scatteredTimers struct {
	begin time.Time
	due   []time.Duration
	ranAt []atomic.Int64 // nanoseconds; zero until the callback has run
	todo  atomic.Int32   // callbacks that have not run
	done  chan struct{}  // closed when all have run

	grace   time.Duration // how long after the last deadline a missing callback counts as lost
	started func()        // called when all timers have been started; may be nil
}

func newScattered(n int, span time.Duration) *scatteredTimers {
	s := &scatteredTimers{due: make([]time.Duration, n), ranAt: make([]atomic.Int64, n), done: make(chan struct{}), grace: scatterGrace}
	s.todo.Store(int32(n))
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range s.due {
		s.due[i] = scatterFirstDue + time.Duration(rng.Int64N(int64(span)))
	}
	return s
}

// run starts the timers and waits until their callbacks have run or are lost.
func (s *scatteredTimers) run(m Maker) {
	impl := m.New(len(s.due))
	defer impl.Close()
	s.begin = time.Now()
	for i, due := range s.due {
		// Start reads the clock after this delay is computed. So the timer is due at due or
		// later, not earlier.
		impl.Start(i, due-time.Since(s.begin), func() {
			s.ranAt[i].Store(int64(time.Since(s.begin)))
			if s.todo.Dec() == 0 {
				close(s.done)
			}
		})
	}
	if s.started != nil {
		s.started()
	}
	var last time.Duration
	for _, due := range s.due {
		last = max(last, due)
	}
	select {
	case <-s.done:
	case <-time.After(last + s.grace):
	}
}

// lateness returns how late each callback ran, in milliseconds, and how many are lost.
func (s *scatteredTimers) lateness() (late []float64, lost int) {
	for i := range s.due {
		ran := time.Duration(s.ranAt[i].Load())
		if ran == 0 {
			lost++
			continue
		}
		late = append(late, milliseconds(ran-s.due[i]))
	}
	return late, lost
}

// figures returns how late callbacks ran (p50-ms, p99-ms), how many ran too early (early),
// and how many never ran (lost).
func (s *scatteredTimers) figures() map[string]float64 {
	late, lost := s.lateness()
	if lost > 0 {
		late = append(late, milliseconds(s.grace))
	}
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
