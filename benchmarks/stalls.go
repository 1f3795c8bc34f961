package benchmarks

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
)

// Stalls starts and stops a timer again and again while a million others fall
// due, and move down the wheels of those who have some, and tells how long that
// takes at worst. A machine has stalls of its own: after every start+stop the
// same goroutine reads nothing but the clock for about as long as the usual
// start+stop takes, and that is the control. (What takes the proc from that goroutine,
// be it the machine or the timers that fall due, counts for either alike.) It reports
//
//   - p50-ns, p99.99-us, max-us: of a start+stop;
//   - control-p99.99-us, control-max-us: of the control;
//   - lost: those of the million that have not run when none has for two seconds.
//
// What an implementation only queues counts until it is queued.
func Stalls(b *testing.B, m Maker) {
	n := choose(10_000, 1_000_000, 1_000_000)
	b.Run("n="+Size(n), func(b *testing.B) {
		onProcs(b, func() map[string]float64 {
			s := newStalls(n, m)
			s.run(b, m)
			worst, control := s.ops.quantile(0.9999), s.control.quantile(0.9999)
			return map[string]float64{
				"p50-ns":            float64(s.ops.quantile(0.5).Nanoseconds()),
				"p99.99-us":         microseconds(worst),
				"control-p99.99-us": microseconds(control),
				"max-us":            microseconds(s.ops.max),
				"control-max-us":    microseconds(s.control.max),
				"lost":              float64(s.lost),
			}
		})
	})
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// stalls is the workload's records. Timers fall due from lead to lead+span.
type stalls struct {
	lead, span   time.Duration
	due          []time.Duration
	ops, control histogram
	lost         int
}

// newStalls has the timers fall due within some seconds. The full workload lasts
// long enough for the default wheel's third level, of 6.5 s a slot, to send a
// slot of several hundred thousand timers down.
func newStalls(n int, m Maker) *stalls {
	s := &stalls{
		lead: m.lead(choose(50*time.Millisecond, 1300*time.Millisecond, 3*time.Second)),
		span: choose(50*time.Millisecond, time.Second, 7*time.Second),
		due:  make([]time.Duration, n),
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for slot, rank := range rng.Perm(n) {
		s.due[slot] = s.lead + s.span*time.Duration(rank)/time.Duration(n)
	}
	return s
}

func (s *stalls) run(b *testing.B, m Maker) {
	n := len(s.due)
	impl := m.New(n + apart + 1)
	defer impl.Close()
	runtime.GC()
	var ran atomic.Int64
	callback := func() { ran.Inc() }
	base := time.Now()
	var wg sync.WaitGroup
	nprocs := runtime.GOMAXPROCS(0)
	for g := range nprocs {
		wg.Go(func() {
			for slot := g; slot < n; slot += nprocs {
				impl.Start(slot, s.due[slot]-time.Since(base), callback)
			}
		})
	}
	wg.Wait()
	flush(impl)
	if time.Since(base) > s.lead {
		b.Logf("%s was still starting timers when the first fell due", m.Name)
	}

	slot, i := n+apart, 0
	startStop := func() {
		impl.Start(slot, longDelay(i), nop)
		impl.Stop(slot)
		i++
	}
	var usual histogram
	for range 10_000 {
		begin := time.Since(base)
		startStop()
		usual.record(time.Since(base) - begin)
	}
	typical := usual.quantile(0.5)
	// Not asleep: with some it takes seconds to wake up once timers fall due.
	begin := time.Since(base)
	for ; begin < s.lead; begin = time.Since(base) {
		startStop()
	}
	for now := begin; now < begin+s.span; {
		startStop()
		end := time.Since(base)
		s.ops.record(end - now)
		for now = time.Since(base); now-end < typical; now = time.Since(base) {
		}
		s.control.record(now - end)
	}

	// The rest of the callbacks, if they are behind.
	for quiet, seen := time.Now(), int64(-1); time.Since(quiet) < 2*time.Second; time.Sleep(time.Millisecond) {
		count := ran.Load()
		if count == int64(n) {
			break
		}
		if count != seen {
			quiet, seen = time.Now(), count
		}
	}
	s.lost += n - int(ran.Load())
}
