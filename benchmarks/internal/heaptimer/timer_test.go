package heaptimer

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"
)

func TestTimer_FiresOnTimeAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := New()
		base := time.Now()
		var order []int
		for _, ms := range rand.Perm(1000) {
			timer.Start(time.Duration(ms)*time.Millisecond, func() {
				if late := time.Since(base) - time.Duration(ms)*time.Millisecond; late != 0 {
					t.Errorf("the timer of %d ms ran %v late", ms, late)
				}
				order = append(order, ms)
			})
		}
		time.Sleep(2 * time.Second)
		timer.Close()
		for i, ms := range order {
			if i != ms {
				t.Fatalf("callback %d to run had a delay of %d ms, want %d", i, ms, i)
			}
		}
		if len(order) != 1000 {
			t.Fatalf("%d of 1000 callbacks ran", len(order))
		}
	})
}

// TestTimer_Model runs random operations and compares the pending timers with a map.
func TestTimer_Model(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const steps = 5_000
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		timer := New()
		type state struct {
			h   Handle
			due time.Time
		}
		var mu sync.Mutex
		want := map[int]state{} // the pending timers
		for i := range steps {
			mu.Lock()
			switch op := rng.IntN(10); {
			case op < 5:
				d := time.Duration(rng.IntN(100)) * time.Millisecond
				h := timer.Start(d, func() {
					mu.Lock()
					defer mu.Unlock()
					s, ok := want[i]
					if !ok || !s.due.Equal(time.Now()) {
						t.Errorf("seed %d: %d ran at %v, wanted %v (%v)", seed, i, time.Now(), s.due, ok)
					}
					delete(want, i)
				})
				want[i] = state{h, time.Now().Add(d)}
			case op < 7:
				for k, s := range want { // any one
					if !s.h.Stop() || s.h.Stop() {
						t.Fatalf("seed %d: a pending timer was not stopped, or was stopped twice", seed)
					}
					delete(want, k)
					break
				}
			case op < 9:
				for k, s := range want {
					d := time.Duration(rng.IntN(100)) * time.Millisecond
					if !s.h.Reset(d) {
						t.Fatalf("seed %d: a pending timer was not reset", seed)
					}
					want[k] = state{s.h, time.Now().Add(d)}
					break
				}
			default:
				mu.Unlock()
				time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
				mu.Lock()
			}
			mu.Unlock()
			synctest.Wait()
			mu.Lock()
			timer.mu.Lock()
			if len(timer.mu.heap) != len(want) {
				t.Fatalf("seed %d: %d are pending, want %d", seed, len(timer.mu.heap), len(want))
			}
			for k, it := range timer.mu.heap {
				if it.index != k || k > 0 && timer.mu.heap[(k-1)/2].deadline > it.deadline {
					t.Fatalf("seed %d: the heap is out of order at %d", seed, k)
				}
			}
			timer.mu.Unlock()
			mu.Unlock()
		}
		if n := timer.Close(); n != len(want) {
			t.Errorf("seed %d: Close reported %d, want %d", seed, n, len(want))
		}
		time.Sleep(time.Second) // nothing runs any more
		for _, s := range want {
			if s.h.Stop() || s.h.Reset(0) {
				t.Errorf("seed %d: a timer was stopped or reset after Close", seed)
			}
		}
	})
}

func TestHandle_StaleNeverTouchesAnother(t *testing.T) {
	timer := New()
	defer timer.Close()
	stale := timer.Start(time.Hour, func() {})
	stale.Stop()
	h := timer.Start(time.Hour, func() {}) // in the same entry
	if h.entry != stale.entry {
		t.Fatal("the entry was not reused")
	}
	if stale.Stop() || stale.Reset(0) || (Handle{}).Stop() || (Handle{}).Reset(0) {
		t.Error("a stale or zero handle stopped or reset a timer")
	}
	if !h.Stop() {
		t.Error("the timer is not pending")
	}
}

func TestTimer_FarAndPastDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := New()
		ran := 0
		timer.Start(math.MaxInt64, func() { t.Error("a timer with a delay of 292 years ran") })
		timer.Start(-time.Second, func() { ran++ })
		timer.Start(0, func() { ran++ })
		synctest.Wait()
		timer.Close()
		if ran != 2 {
			t.Errorf("%d of 2 timers that were due at once ran", ran)
		}
		if timer.Start(0, func() { t.Error("a callback ran after Close") }).Stop() || timer.Close() != 0 {
			t.Error("a closed Timer accepted a timer")
		}
	})
}

// Every started timer either runs, is stopped, or is still pending at Close.
func TestStress_StartStopClose(t *testing.T) {
	timer := New()
	var started, ran, stopped atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20_000 {
				d := time.Duration(rand.IntN(2_000_000))
				begin := time.Now()
				h := timer.Start(d, func() {
					ran.Inc()
					if time.Since(begin) < d {
						t.Error("a callback ran early")
					}
				})
				started.Inc()
				if rand.IntN(2) == 0 && h.Stop() {
					stopped.Inc()
				}
			}
		})
	}
	wg.Wait()
	left := timer.Close()
	if got := ran.Load() + stopped.Load() + int64(left); got != started.Load() {
		t.Errorf("%d ran, %d stopped, %d left of %d", ran.Load(), stopped.Load(), left, started.Load())
	}
}
