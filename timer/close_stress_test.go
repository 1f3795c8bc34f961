package timer

import (
	"context"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
)

// footprint counts the resources that a Scheduler must release.
type footprint struct {
	goroutines, descriptors int
	heap                    int64
}

func footprintNow(t *testing.T) (f footprint) {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	f.heap = int64(m.HeapAlloc)
	f.goroutines = runtime.NumGoroutine()
	if runtime.GOOS == "linux" {
		es, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		f.descriptors = len(es)
	}
	return f
}

// backTo waits until the process has no more resources than before. The heap may be up to
// 4 MB larger.
func backTo(t *testing.T, before footprint) {
	t.Helper()
	var now footprint
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		now = footprintNow(t)
		if now.goroutines <= before.goroutines && now.descriptors <= before.descriptors && now.heap < before.heap+4e6 {
			return
		}
	}
	buf := make([]byte, 1<<16)
	t.Fatalf("before: %+v, after: %+v\n%s", before, now, buf[:runtime.Stack(buf, true)])
}

// warm sets an alarm. The first alarm starts the runtime's network poller, which has
// descriptors, so call warm before footprintNow.
func warm(t *testing.T) {
	s := New()
	_, err := s.Start(time.Hour, func() {})
	require.NoError(t, err)
	require.NoError(t, s.Shutdown(context.Background()))
}

// warmGoroutines runs n goroutines at the same time. The runtime keeps their memory for
// later goroutines, and counts it as heap.
func warmGoroutines(n int) {
	var wg sync.WaitGroup
	over := make(chan struct{})
	for range n {
		wg.Go(func() { <-over })
	}
	close(over)
	wg.Wait()
}

// rounds calls f once. In the long form (TICKLESS_STRESS=long), it repeats f for 15 s.
func rounds(t *testing.T, f func(round int)) {
	n := 0
	for end := time.Now().Add(stressFor(0, 15*time.Second)); n == 0 || time.Now().Before(end); n++ {
		f(n)
	}
	t.Logf("%d rounds", n)
}

// A million timers are pending at Close, while goroutines start and stop more. Each timer
// runs, is stopped, or is returned by TakeLeftover. Afterwards no resources remain.
func TestStress_CloseWhileAMillionArePending(t *testing.T) {
	pending := 1_000_000
	if RaceEnabled && !StressLong() {
		pending = 100_000
	}
	warm(t)
	warmGoroutines(frenzyLimit) // the pool may start as many workers while all procs are busy
	before := footprintNow(t)
	rounds(t, func(round int) {
		s := New()
		var ran, stopped, started atomic.Int64
		f := func() { ran.Inc() }
		for i := range pending {
			_, err := s.Start(time.Hour+time.Duration(i)*time.Microsecond, f)
			require.NoError(t, err)
		}
		started.Add(int64(pending))
		var adders sync.WaitGroup
		var running sync.WaitGroup
		for g := range 4 {
			running.Add(1)
			adders.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(round), uint64(g)))
				for i := 0; ; i++ {
					h, err := s.Start(time.Duration(rng.IntN(int(10*time.Millisecond))-1000), f)
					if err != nil {
						if err != ErrClosed {
							t.Error(err)
						}
						return
					}
					started.Inc()
					if rng.IntN(2) == 0 && h.Stop() {
						stopped.Inc()
					}
					if i == 1000 {
						running.Done()
					}
				}
			})
		}
		running.Wait()
		// If several goroutines call TakeLeftover, each timer is returned to only one of
		// them.
		handed := make(chan int)
		for range 2 {
			go func() {
				ps := closeAll(s)
				for i := 1; i < len(ps); i++ {
					if ps[i].Deadline.Before(ps[i-1].Deadline) {
						t.Error("leftover timers are not sorted by deadline")
						break
					}
				}
				handed <- len(ps)
			}()
		}
		handedBack := <-handed + <-handed
		adders.Wait()
		require.NoError(t, s.Shutdown(context.Background()))
		require.Empty(t, closeAll(s))
		require.GreaterOrEqual(t, handedBack, pending)
		require.Equal(t, started.Load(), ran.Load()+stopped.Load()+int64(handedBack))
		st := s.Stats()
		require.EqualValues(t, started.Load(), st.Started)
		require.EqualValues(t, ran.Load(), st.Fired)
		require.EqualValues(t, stopped.Load(), st.Stopped)
		require.EqualValues(t, handedBack, st.HandedBack)
		require.Zero(t, st.Pending)
		require.Zero(t, st.Refused)
	})
	backTo(t, before)
}

// Callbacks and other goroutines start, stop and move timers, until a callback closes the
// Scheduler. Each timer runs, is stopped, or is returned by TakeLeftover, exactly once.
func TestStress_CallbacksStartStopResetClose(t *testing.T) {
	warm(t)
	warmGoroutines(frenzyLimit)
	before := footprintNow(t)
	for name, e := range map[string]func() executor.Executor{
		"default":    func() executor.Executor { return nil },
		"inline":     func() executor.Executor { return executor.NewInline() },
		"goroutines": func() executor.Executor { return executor.NewGoroutines() },
		"bounded":    func() executor.Executor { return executor.NewPool(executor.WithWorkers(2), executor.WithMaxWorkers(2)) },
		"one's own":  func() executor.Executor { return executor.Func(func(f func()) error { f(); return nil }) },
	} {
		t.Log(name)
		rounds(t, func(round int) {
			frenzy(t, New(WithExecutor(e()), WithWheelSize(4)), uint64(round))
		})
	}
	backTo(t, before)
}

// frenzyLimit is how many timers a call of frenzy starts.
const frenzyLimit = 30_000

// frenzied is a timer that frenzy has started.
type frenzied struct {
	// ends counts how often the timer ended: it ran, a Stop reported true, or Close
	// handed it back.
	ends atomic.Int32
	h    Handle
}

func frenzy(t *testing.T, s *Scheduler, seed uint64) {
	const limit = frenzyLimit
	var mu sync.Mutex
	var all []*frenzied
	var closed atomic.Bool
	handed := make(chan []Leftover, 1)
	var act func(rng *rand.Rand)
	begin := func(d time.Duration) {
		mu.Lock()
		if len(all) == limit {
			// After the last start, a callback closes the Scheduler.
			mu.Unlock()
			if !closed.Swap(true) {
				handed <- closeAll(s)
			}
			return
		}
		x := &frenzied{}
		n := uint64(len(all))
		all = append(all, x)
		mu.Unlock()
		h, err := s.Start(d, func() {
			x.ends.Inc()
			if !closed.Load() {
				rng := rand.New(rand.NewPCG(seed, n))
				for range 3 {
					act(rng)
				}
			}
		})
		if err != nil {
			x.ends.Inc() // the timer was not started
			return
		}
		mu.Lock()
		x.h = h
		mu.Unlock()
	}
	pick := func(rng *rand.Rand) (*frenzied, Handle) {
		mu.Lock()
		defer mu.Unlock()
		// Pick a recent timer, because it is probably pending.
		x := all[len(all)-1-rng.IntN(min(len(all), 200))]
		return x, x.h
	}
	act = func(rng *rand.Rand) {
		switch rng.IntN(8) {
		case 0:
			if x, h := pick(rng); h.Stop() {
				x.ends.Inc()
			}
		case 1:
			_, h := pick(rng)
			h.Move(time.Duration(rng.IntN(2000)-100) * time.Microsecond)
		case 2:
			s.Stats()
		default:
			begin(time.Duration(rng.IntN(1500)-100) * time.Microsecond)
		}
	}
	begin(0)
	var wg sync.WaitGroup
	for g := range 2 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1e9+uint64(g)))
			for !closed.Load() {
				act(rng)
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	ps := <-handed
	require.NoError(t, s.Shutdown(context.Background()))
	for _, p := range ps {
		p.Func() // counts as an end, like a run
	}
	require.Len(t, all, limit)
	for i, x := range all {
		require.EqualValues(t, 1, x.ends.Load(), "timer %d", i)
	}
	st := s.Stats()
	require.EqualValues(t, limit, st.Started+st.Rejected)
	require.Equal(t, st.Started, st.Fired+st.Stopped+st.HandedBack)
	require.EqualValues(t, len(ps), st.HandedBack)
	require.Zero(t, st.Refused)
}
