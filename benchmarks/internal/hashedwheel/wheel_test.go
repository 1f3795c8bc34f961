package hashedwheel

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"
)

var config = Config{Tick: time.Millisecond, Slots: 64}

// TestWheel_Model drives random operations beside a plain map, with delays of
// many rounds.
func TestWheel_Model(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const steps = 5_000
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		wheel := New(config)
		delay := func() time.Duration { return time.Duration(rng.IntN(300_000_000)) }
		type state struct {
			h   Handle
			due time.Time
		}
		var mu sync.Mutex
		want := map[int]state{} // what is pending
		for i := range steps {
			mu.Lock()
			switch op := rng.IntN(10); {
			case op < 5:
				d := delay()
				h, err := wheel.Start(d, func() {
					mu.Lock()
					defer mu.Unlock()
					s, ok := want[i]
					late := time.Since(s.due)
					if !ok || late < 0 || late > config.Tick {
						t.Errorf("seed %d: %d ran %v late (%v)", seed, i, late, ok)
					}
					delete(want, i)
				})
				if err != nil {
					t.Fatal(err)
				}
				want[i] = state{h, time.Now().Add(d)}
			case op < 7:
				for k, s := range want { // any one
					if !s.h.Stop() || s.h.Stop() {
						t.Fatalf("seed %d: a pending timer was not stopped, or twice", seed)
					}
					delete(want, k)
					break
				}
			case op < 9:
				for k, s := range want {
					d := delay()
					if !s.h.Reset(d) {
						t.Fatalf("seed %d: a pending timer was not reset", seed)
					}
					want[k] = state{s.h, time.Now().Add(d)}
					break
				}
			default:
				mu.Unlock()
				time.Sleep(time.Duration(rng.IntN(60_000_000)))
				mu.Lock()
			}
			mu.Unlock()
			synctest.Wait()
			mu.Lock()
			if wheel.Pending() != len(want) {
				t.Fatalf("seed %d: %d are pending, want %d", seed, wheel.Pending(), len(want))
			}
			mu.Unlock()
		}
		if left := wheel.Stop(); len(left) != len(want) {
			t.Errorf("seed %d: %d were handed back, want %d", seed, len(left), len(want))
		}
		time.Sleep(time.Second) // nothing runs any more
		for _, s := range want {
			if s.h.Stop() || s.h.Reset(0) {
				t.Errorf("seed %d: a timer was stopped or reset after the wheel was", seed)
			}
		}
	})
}

func TestWheelStart_MaxPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := config
		c.MaxPending = 2
		wheel := New(c)
		defer wheel.Stop()
		var ran atomic.Int32
		first, _ := wheel.Start(time.Hour, func() {})
		if _, err := wheel.Start(time.Millisecond, func() { ran.Inc() }); err != nil {
			t.Fatal(err)
		}
		if _, err := wheel.Start(time.Hour, func() {}); !errors.Is(err, ErrTooManyPending) {
			t.Errorf("the third got %v", err)
		}
		first.Stop()
		if _, err := wheel.Start(time.Hour, func() {}); err != nil {
			t.Errorf("after one was stopped: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if _, err := wheel.Start(time.Hour, func() {}); err != nil || ran.Load() != 1 {
			t.Errorf("after one has run: %v, ran %d", err, ran.Load())
		}
	})
}

func TestWheelStop_HandsBackWhatWasPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wheel := New(config)
		ran := 0
		wheel.Start(5*time.Millisecond, func() { ran++ })
		stopped, _ := wheel.Start(time.Minute, func() { t.Error("ran although stopped") })
		stopped.Stop()
		called := map[time.Duration]bool{}
		for _, d := range []time.Duration{time.Second, time.Minute, math.MaxInt64} {
			wheel.Start(d, func() { called[d] = true })
		}
		time.Sleep(10 * time.Millisecond)
		left := wheel.Stop()
		if ran != 1 || len(left) != 3 {
			t.Fatalf("%d ran, %d were handed back", ran, len(left))
		}
		for _, u := range left {
			if u.Left <= 900*time.Millisecond {
				t.Errorf("one had only %v left", u.Left)
			}
			u.F()
		}
		if len(called) != 3 {
			t.Errorf("the callbacks handed back are %v", called)
		}
		if again := wheel.Stop(); again != nil {
			t.Errorf("the second Stop handed back %d", len(again))
		}
		if _, err := wheel.Start(0, func() {}); !errors.Is(err, ErrStopped) {
			t.Errorf("a stopped wheel: %v", err)
		}
	})
}

func TestHandle_StaleNeverTouchesAnother(t *testing.T) {
	wheel := New(config)
	defer wheel.Stop()
	stale, _ := wheel.Start(time.Hour, func() {})
	stale.Stop()
	h, _ := wheel.Start(time.Hour, func() {}) // in the same entry
	if h.e != stale.e {
		t.Fatal("the entry was not reused")
	}
	if stale.Stop() || stale.Reset(0) || (Handle{}).Stop() || (Handle{}).Reset(0) {
		t.Error("a stale or zero handle did something")
	}
	if !h.Stop() {
		t.Error("the timer was gone")
	}
}

func TestNew_Defaults(t *testing.T) {
	wheel := New(Config{})
	defer wheel.Stop()
	if wheel.interval != 100*time.Millisecond || len(wheel.mu.slots) != 512 {
		t.Errorf("tick %v, %d slots", wheel.interval, len(wheel.mu.slots))
	}
	odd := New(Config{Slots: 100})
	defer odd.Stop()
	if len(odd.mu.slots) != 128 {
		t.Errorf("100 slots became %d", len(odd.mu.slots))
	}
	defer func() {
		if recover() == nil {
			t.Error("a negative tick was accepted")
		}
	}()
	New(Config{Tick: -1})
}

// TestStress_StartStopStop: what was started ran, was stopped or was handed back,
// once.
func TestStress_StartStopStop(t *testing.T) {
	wheel := New(config)
	var started, ran, stopped atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20_000 {
				d := time.Duration(rand.IntN(2_000_000))
				begin := time.Now()
				h, err := wheel.Start(d, func() {
					ran.Inc()
					if time.Since(begin) < d {
						t.Error("ran early")
					}
				})
				if err != nil {
					t.Error(err)
					return
				}
				started.Inc()
				if rand.IntN(2) == 0 && h.Stop() {
					stopped.Inc()
				}
			}
		})
	}
	wg.Wait()
	left := len(wheel.Stop())
	if got := ran.Load() + stopped.Load() + int64(left); got != started.Load() {
		t.Errorf("%d ran, %d stopped, %d handed back of %d", ran.Load(), stopped.Load(), left, started.Load())
	}
}
