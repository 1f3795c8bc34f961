package benchmarks

import (
	"flag"
	"testing"
	"time"

	"go.uber.org/atomic"
)

func TestPendingShare_CoversEverySlotOnce(t *testing.T) {
	for _, n := range []int{0, 1, 7, 1000} {
		for nprocs := 1; nprocs <= 3; nprocs++ {
			p := pendingTimers{n: n, procs: nprocs}
			next := 0
			for g := range nprocs {
				first, count := p.slotsOfGoroutine(g)
				if first != next {
					t.Errorf("n=%d: the slots of goroutine %d of %d begin at %d, want %d", n, g, nprocs, first, next)
				}
				next = first + count
			}
			if next != n {
				t.Errorf("n=%d: %d goroutines have %d slots", n, nprocs, next)
			}
		}
	}
}

// counting is an Impl that only counts calls.
type counting struct {
	starts, stops, resets atomic.Int64
	flushes               int
}

func (c *counting) Start(int, time.Duration, func())  { c.starts.Inc() }
func (c *counting) Stop(int) bool                     { c.stops.Inc(); return true }
func (c *counting) Reset(_ int, _ time.Duration) bool { c.resets.Inc(); return true }
func (c *counting) Flush()                            { c.flushes++ }
func (c *counting) Close()                            {}

// benchmark runs f with b.N = 1237, which two goroutines cannot divide evenly.
func benchmark(t *testing.T, f func(*testing.B)) {
	t.Helper()
	benchtime := flag.Lookup("test.benchtime").Value
	usual := benchtime.String()
	if err := benchtime.Set("1237x"); err != nil {
		t.Fatal(err)
	}
	testing.Benchmark(f)
	if err := benchtime.Set(usual); err != nil {
		t.Fatal(err)
	}
}

func TestPending_DoesWhatIsMeasuredAndFlushes(t *testing.T) {
	for nprocs := 1; nprocs <= 2; nprocs++ {
		c := new(counting)
		p := pendingTimers{impl: c, n: 100, procs: nprocs, delay: randomDelay}
		p.fillSlots()
		if got := c.starts.Load(); got != 100 || c.flushes != 1 {
			t.Errorf("fill started %d timers, want 100, and flushed %d times, want 1", got, c.flushes)
		}
		ops := 0
		benchmark(t, func(b *testing.B) {
			c.starts.Store(0)
			measureStartStop(b, p)
			ops = b.N
		})
		if got := c.starts.Load(); got != int64(ops) {
			t.Errorf("%d procs started %d timers in %d operations", nprocs, got, ops)
		}
		benchmark(t, func(b *testing.B) {
			c.resets.Store(0)
			p.resetTimers(b, "random", randomDelay)
			ops = b.N
		})
		if got := c.resets.Load(); got != int64(ops) {
			t.Errorf("%d procs reset %d timers in %d operations", nprocs, got, ops)
		}
	}
}
