package benchmarks

import (
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/atomic"
)

const (
	scatterLead  = 50 * time.Millisecond // before the first falls due
	scatterGrace = 5 * time.Second       // after which the rest is lost
)

// scattered is a number of timers that fall due at random times. Times are relative to
// base.
type scattered struct {
	base time.Time
	due  []time.Duration
	ran  []atomic.Int64 // nanoseconds; zero until the callback has run
	todo atomic.Int32
	done chan struct{}

	grace   time.Duration // after which a callback counts as lost
	started func()        // is called when all timers have been started, if not nil
}

func newScattered(n int, span time.Duration) *scattered {
	s := &scattered{due: make([]time.Duration, n), ran: make([]atomic.Int64, n), done: make(chan struct{}), grace: scatterGrace}
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
		// The implementation reads its clock after this line, so that due is never
		// after the true deadline.
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
	var last time.Duration
	for _, due := range s.due {
		last = max(last, due)
	}
	select {
	case <-s.done:
	case <-time.After(last + s.grace):
	}
}

// lateness returns how late the callbacks ran, in milliseconds, and how many did not
// run.
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

// figures returns p50-ms and p99-ms, how late the callbacks ran, and early and lost.
func (s *scattered) figures() map[string]float64 {
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
