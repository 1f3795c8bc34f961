package timer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// Tests of the guarantees in the package comment, by number: see docs/guarantees.md.

// wheels calls f with several ticks, wheel sizes and numbers of shards.
func wheels(t *testing.T, f func(t *testing.T, tick time.Duration, opts ...timer.Option)) {
	for _, tick := range []time.Duration{1, 7 * time.Microsecond, 100 * time.Microsecond, 250 * time.Millisecond} {
		for _, size := range []int{2, 16, 256} {
			for _, shards := range []int{1, 3} {
				t.Run(fmt.Sprintf("tick=%v/size=%d/shards=%d", tick, size, shards), func(t *testing.T) {
					f(t, tick, timer.WithTick(tick), timer.WithWheelSize(size), timer.WithShards(shards))
				})
			}
		}
	}
}

// delaysOf returns delays of all lengths, most of them close to the end of a tick or of a
// wheel's level.
func delaysOf(tick time.Duration) []time.Duration {
	rng := rand.New(rand.NewPCG(1, 2))
	var ds []time.Duration
	for span := tick; span < math.MaxInt64/4 && span > 0; span *= 2 {
		for _, d := range []time.Duration{span - tick, span - 1, span, span + 1, span + tick/2, span + tick} {
			if d > 0 {
				ds = append(ds, d)
			}
		}
		ds = append(ds, 1+time.Duration(rng.Int64N(int64(span))))
	}
	return ds
}

func TestGuarantee01_NeverEarly(t *testing.T) {
	wheels(t, func(t *testing.T, tick time.Duration, opts ...timer.Option) {
		s, clk := virtual(t, opts...)
		ran, n := 0, 0
		for _, begin := range []time.Duration{0, tick / 2, 12345678, 77 * time.Minute} {
			clk.Advance(begin)
			for i, d := range delaysOf(tick) {
				due := clk.Now().Add(d)
				h := start(t, s, d, func() {
					ran++
					if now := clk.Now(); now.Before(due) {
						t.Fatalf("%v early: a delay of %v", due.Sub(now), d)
					}
				})
				n++
				switch i % 3 {
				case 1: // moved later
					d += d / 3
				case 2: // moved earlier
					d -= d / 3
				default:
					continue
				}
				due = clk.Now().Add(d)
				require.True(t, h.Move(d), "it has fired at once: a delay of %v", d)
			}
		}
		clk.Advance(math.MaxInt64 / 2)
		require.Equal(t, n, ran)
	})
	t.Run("load", func(t *testing.T) {
		// All procs are busy, and most timers move down several levels.
		s := timer.New(timer.WithWheelSize(4))
		end := time.Now().Add(200 * time.Millisecond)
		var wg sync.WaitGroup
		for range runtime.GOMAXPROCS(0) {
			wg.Go(func() {
				for time.Now().Before(end) {
				}
			})
		}
		var early atomic.Int64
		for i := range 20_000 {
			d := time.Duration(i) * 10 * time.Microsecond
			due := time.Now().Add(d)
			start(t, s, d, func() {
				if time.Now().Before(due) {
					early.Inc()
				}
			})
		}
		for s.Len() > 0 {
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		require.NoError(t, s.Shutdown(context.Background()))
		require.Zero(t, early.Load())
		require.EqualValues(t, 20_000, s.Stats().Fired)
	})
}

func TestGuarantee02_LateByAtMostATick(t *testing.T) {
	wheels(t, func(t *testing.T, tick time.Duration, opts ...timer.Option) {
		s, clk := virtual(t, opts...)
		ran, n := 0, 0
		for _, begin := range []time.Duration{0, tick / 2, 12345678, 77 * time.Minute} {
			clk.Advance(begin)
			ds := delaysOf(tick)
			// Start with the longest delay, so that each start must move the alarm.
			for i := len(ds) - 1; i >= 0; i-- {
				d := ds[i]
				due := clk.Now().Add(d)
				h := start(t, s, d, func() {
					ran++
					if now := clk.Now(); now.Sub(due) >= tick {
						t.Fatalf("%v late: a delay of %v", now.Sub(due), d)
					}
				})
				n++
				if i%2 == 0 { // moved to before the poller's alarm
					d -= d / 2
					due = clk.Now().Add(d)
					require.True(t, h.Move(d))
				}
			}
		}
		clk.Advance(math.MaxInt64 / 2)
		require.Equal(t, n, ran)
		late := s.Stats().Lateness
		require.Less(t, late.Max(), tick)
	})
}

// Several batches of timers are due at one moment. Callbacks stop other timers: Stop
// reports true only for timers that are still in the wheel.
func TestGuarantee03_OnceAndNeverAfterStop(t *testing.T) {
	for name, late := range map[string]int64{"expiry": 1, "cascade": 3} {
		t.Run(name, func(t *testing.T) {
			// In the case "cascade" all timers are in one slot of the second level. When
			// the slot expires, a third of them fire, and the others move down.
			s, clk := virtual(t, timer.WithTick(1), timer.WithWheelSize(4))
			begin := time.Duration(1)
			if late > 1 {
				begin = 8
			}
			const n = 3000
			rng := rand.New(rand.NewPCG(1, uint64(late)))
			hs := make([]timer.Handle, n)
			runs := make([]int, n)
			stopped := make([]int, n)
			var yes, no int
			for i := range hs {
				hs[i] = start(t, s, begin+time.Duration(int64(i)%late), func() {
					runs[i]++
					for range 4 {
						j := rng.IntN(n)
						if hs[j].Stop() {
							stopped[j]++
							yes++
						} else {
							no++
						}
					}
				})
			}
			clk.Advance(time.Minute)
			for i := range hs {
				require.Equal(t, 1, runs[i]+stopped[i], "timer %d ran %d times and was stopped %d times", i, runs[i], stopped[i])
			}
			require.NotZero(t, yes)
			require.NotZero(t, no)
			balanced(t, s.Stats())
		})
	}
}

func TestGuarantee04_Conservation(t *testing.T) {
	t.Run("timers", func(t *testing.T) {
		s, clk := virtual(t, timer.WithWheelSize(8), timer.WithShards(3))
		rng := rand.New(rand.NewPCG(4, 4))
		d := func() time.Duration { return time.Duration(rng.IntN(int(time.Second))) }
		ran := uint64(0)
		f := func() { ran++ }
		tick := s.NewTicker(50 * time.Millisecond)
		var hs []timer.Handle
		var ts []*timer.Timer
		channels := uint64(0)
		for range 3000 {
			switch rng.IntN(7) {
			case 0, 1:
				hs = append(hs, start(t, s, d()-time.Millisecond, f))
			case 2:
				ts = append(ts, s.AfterFunc(d(), f))
			case 3:
				s.NewTimer(d())
				channels++
			case 4:
				if len(hs) > 0 {
					hs[rng.IntN(len(hs))].Stop()
				}
			case 5:
				if len(ts) > 0 {
					ts[rng.IntN(len(ts))].Reset(d())
				}
			case 6:
				clk.Advance(d() / 20)
			}
			st := s.Stats()
			balanced(t, st)
			require.LessOrEqual(t, ran, st.Fired)
		}
		tick.Stop()
		pending := s.Len()
		require.NotZero(t, pending)
		require.Len(t, closeAll(s), pending)
		clk.Advance(time.Hour)
		st := s.Stats()
		balanced(t, st)
		require.EqualValues(t, pending, st.HandedBack)
		require.Zero(t, st.Pending)
		require.Zero(t, st.Queued)
	})
	t.Run("callbacks", func(t *testing.T) {
		// The callback of every fired timer runs, even if the executor refuses it.
		synctest.Test(t, func(t *testing.T) {
			submitted := 0
			s := timer.New(timer.WithExecutor(executor.Func(func(f func()) error {
				if submitted++; submitted%3 == 0 {
					return errors.New("full")
				}
				go f()
				return nil
			})))
			var ran atomic.Int64
			for i := range 600 {
				start(t, s, time.Duration(i%40)*time.Millisecond, func() { time.Sleep(time.Millisecond); ran.Inc() })
			}
			for range 100 {
				time.Sleep(time.Millisecond)
				synctest.Wait()
				st := s.Stats()
				balanced(t, st)
				require.LessOrEqual(t, uint64(ran.Load()), st.Fired)
			}
			require.NoError(t, s.Shutdown(context.Background()))
			st := s.Stats()
			require.EqualValues(t, 600, st.Fired)
			require.EqualValues(t, 600, ran.Load())
			require.EqualValues(t, 200, st.Refused)
			require.Zero(t, st.Queued)
		})
	})
}

// New timers reuse the memory of old timers. A Handle of an old timer affects no new
// timer.
func TestGuarantee05_StaleHandles(t *testing.T) {
	s, clk := virtual(t)
	const n = 5000 // several chunks
	var stale []timer.Handle
	for round := range 5 {
		ran := 0
		var hs []timer.Handle
		for range n {
			hs = append(hs, start(t, s, time.Second, func() { ran++ }))
		}
		for i, h := range stale {
			require.False(t, h.Stop(), "round %d: stale handle %d has stopped another timer", round, i)
			require.False(t, h.Move(time.Hour), "round %d: stale handle %d has reset another timer", round, i)
			require.False(t, h.Move(0), "round %d: stale handle %d has fired another timer", round, i)
		}
		require.Equal(t, n, s.Len())
		if round%2 == 0 {
			for _, h := range hs {
				require.True(t, h.Stop())
			}
			require.Zero(t, s.Len()) // most of the memory has been given back
		} else {
			clk.Advance(time.Second)
			require.Equal(t, n, ran, "round %d", round)
		}
		stale = append(stale, hs...)
	}
}

// If a call waits for ever, the test does not end.
func TestGuarantee06_EverythingFromInsideCallbacks(t *testing.T) {
	for name, e := range executors() {
		t.Run(name, func(t *testing.T) {
			s := timer.New(timer.WithExecutor(e()), timer.WithShards(2))
			var ran atomic.Int64
			tm := s.AfterFunc(time.Hour, func() { ran.Inc() })
			far, _ := s.Start(time.Hour, func() { ran.Inc() })
			closed := make(chan int)
			s.Start(time.Millisecond, func() {
				near, _ := s.Start(0, func() { ran.Inc() })
				near.Stop()
				near.Move(1)
				next, _ := s.Start(time.Hour, func() { ran.Inc() })
				next.Move(time.Millisecond)
				far.Stop()
				tm.Reset(2 * time.Millisecond)
				tick := s.NewTicker(time.Hour)
				tick.Reset(time.Minute)
				tick.Stop()
				s.Len()
				s.Stats()
				s.Start(time.Hour, func() {}) // before the callback that closes s can run
				s.Start(5*time.Millisecond, func() {
					ps := closeAll(s)
					s.Close()
					_, err := s.Start(1, func() {})
					if err != timer.ErrClosed {
						ps = nil
					}
					ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
					defer cancel()
					s.Shutdown(ctx) // waits for this callback, until ctx ends
					closed <- len(ps)
				})
			})
			if n := <-closed; n != 1 {
				t.Errorf("%d handed back", n)
			}
			if err := s.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			if n := ran.Load(); n != 3 {
				t.Errorf("%d callbacks ran, not 3", n)
			}
		})
	}
}

// Of every four callbacks, one panics, one ends its goroutine and one never returns.
func TestGuarantee07_PanicOrHangHarmsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var panics, ran atomic.Int64
		s := timer.New(timer.WithPanicHandler(func(any, []byte) { panics.Inc() }))
		hang := make(chan struct{})
		const n = 1000
		for i := range 4 * n {
			start(t, s, time.Second, func() {
				switch i % 4 {
				case 0:
					panic(i)
				case 1:
					runtime.Goexit()
				case 2:
					<-hang
				}
				ran.Inc()
			})
		}
		tick := s.NewTicker(time.Second)
		time.Sleep(time.Second + 20*time.Millisecond)
		require.EqualValues(t, n, panics.Load())
		require.EqualValues(t, n, ran.Load(), "callbacks must run while others hang")
		// Timers that are started later fire in time too.
		for range 3 {
			before := ran.Load()
			start(t, s, time.Second, func() { ran.Inc() })
			time.Sleep(time.Second + 20*time.Millisecond)
			require.Equal(t, before+1, ran.Load())
			require.Len(t, tick.C, 1)
			<-tick.C
		}
		close(hang)
		tick.Stop()
		require.NoError(t, s.Shutdown(context.Background()))
		require.EqualValues(t, 2*n+3, ran.Load())
	})
}

// gone fails the test unless all objects have become garbage.
func gone(t *testing.T, ps map[string][]weak.Pointer[object]) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Second); ; {
		runtime.GC()
		left := ""
		for name, ps := range ps {
			n := 0
			for _, p := range ps {
				if p.Value() != nil {
					n++
				}
			}
			if n > 0 {
				left += fmt.Sprintf(" %d of %d %s", n, len(ps), name)
			}
		}
		if left == "" {
			return
		}
		require.True(t, time.Now().Before(deadline), "still reachable:%s", left)
		time.Sleep(10 * time.Millisecond)
	}
}

// object is referred to by callbacks. It is too large for the tiny allocator, which would
// keep several objects alive together.
type object struct {
	n int
	_ [128]byte
}

func TestGuarantee08_NothingStaysReachable(t *testing.T) {
	run := func(t *testing.T, s *timer.Scheduler, wait func(time.Duration)) {
		all := make(map[string][]weak.Pointer[object])
		// callback returns a function that keeps a new object reachable.
		callback := func(name string) func() {
			o := new(object)
			all[name] = append(all[name], weak.Make(o))
			return func() { o.n++ }
		}
		var hs []timer.Handle // handles keep nothing alive
		for range 1500 {
			hs = append(hs, start(t, s, time.Millisecond, callback("fired")))
			start(t, s, -1, callback("fired at once"))
			h := start(t, s, time.Hour, callback("stopped"))
			require.True(t, h.Stop())
			h = start(t, s, time.Hour, callback("reset to fire"))
			require.True(t, h.Move(2*time.Millisecond))
			h = start(t, s, time.Millisecond, callback("reset to fire later"))
			h.Move(3 * time.Millisecond)
			h = start(t, s, time.Hour, callback("reset to fire at once"))
			require.True(t, h.Move(0))
			s.AfterFunc(time.Millisecond, callback("fired Timers"))
			s.AfterFunc(time.Hour, callback("stopped Timers")).Stop()
			hs = append(hs, start(t, s, time.Hour, callback("handed back")))
		}
		wait(time.Second)
		handedBack := all["handed back"]
		delete(all, "handed back")
		gone(t, all)
		// The callbacks of pending timers are still reachable.
		for _, p := range handedBack {
			require.NotNil(t, p.Value())
		}
		require.Len(t, closeAll(s), 1500)
		gone(t, map[string][]weak.Pointer[object]{"handed back": handedBack})
		runtime.KeepAlive(hs)
		runtime.KeepAlive(s)
	}
	t.Run("virtual", func(t *testing.T) {
		s, clk := virtual(t)
		run(t, s, clk.Advance)
	})
	for name, e := range executors() {
		t.Run(name, func(t *testing.T) {
			s := timer.New(timer.WithExecutor(e()))
			run(t, s, func(time.Duration) {
				for s.Len() > 1500 {
					time.Sleep(time.Millisecond)
				}
			})
			require.NoError(t, s.Shutdown(context.Background()))
		})
	}
}

// million is a million, or fewer timers under the race detector.
func million() int {
	if timer.RaceEnabled {
		return 100_000
	}
	return 1_000_000
}

// heap returns the bytes of live objects. It waits until garbage of earlier tests is
// freed.
func heap() int64 {
	last := int64(-1)
	for {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // frees what the first collection has finalized
		runtime.ReadMemStats(&m)
		now := int64(m.HeapAlloc)
		if last >= 0 && now > last-4096 {
			return now
		}
		last = now
		time.Sleep(time.Millisecond)
	}
}

func TestGuarantee08_MemoryFallsAfterAPeak(t *testing.T) {
	const isChild = "TICKLESS_MEMORY_CHILD"
	if os.Getenv(isChild) == "" { // earlier tests may free memory meanwhile
		child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		child.Env = append(os.Environ(), isChild+"=1")
		out, err := child.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	n := million()
	f := func() {}
	hs := make([]timer.Handle, n)
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	for name, end := range map[string]func(s *timer.Scheduler, clk *timertest.Clock){
		"stopped": func(s *timer.Scheduler, clk *timertest.Clock) {
			for _, i := range order {
				hs[i].Stop()
			}
		},
		"fired": func(s *timer.Scheduler, clk *timertest.Clock) { clk.Advance(time.Hour) },
		"handed back": func(s *timer.Scheduler, clk *timertest.Clock) {
			s.Close()
			s.TakeLeftover() // drops the result
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, clk := virtual(t)
			clear(hs) // handles of the previous case keep its Scheduler alive
			before := heap()
			for i := range hs {
				hs[i] = start(t, s, time.Duration(1+i%600)*time.Second, f)
			}
			peak := heap()
			end(s, clk)
			require.Zero(t, s.Len())
			after := heap()
			t.Logf("%d pending: %.1f MB; none: %.2f MB", n, float64(peak-before)/1e6, float64(after-before)/1e6)
			require.Greater(t, peak-before, int64(20*n), "more than 20 bytes for each")
			require.Less(t, after-before, int64(4*n))
			runtime.KeepAlive(s)
		})
	}
}

func TestGuarantee09_NoWakeupsWithoutWork(t *testing.T) {
	t.Run("a million far timers", func(t *testing.T) {
		s, clk := virtual(t)
		rng := rand.New(rand.NewPCG(1, 2))
		for range million() {
			start(t, s, time.Hour+time.Duration(rng.Int64N(int64(time.Hour))), func() {})
		}
		// The timers are due after 60 minutes or later. The first bucket covers 28
		// minutes, and expires after 56.
		clk.Advance(50 * time.Minute)
		require.Zero(t, s.Stats().Wakeups)
		// The first bucket and one bucket at each lower level expire before the first
		// timer fires, each perhaps twice: before its slot begins, and when it begins.
		clk.Advance(10*time.Minute - 1)
		st := s.Stats()
		require.LessOrEqual(t, st.Wakeups, uint64(6))
		require.Zero(t, st.EmptyWakeups)
		require.Zero(t, st.Fired)
	})
	t.Run("one wake-up a bucket", func(t *testing.T) {
		s, clk := virtual(t)
		const n = 1000
		for i := range n {
			start(t, s, time.Duration(1+i)*time.Minute, func() {})
		}
		clk.Advance(24 * time.Hour)
		st := s.Stats()
		require.EqualValues(t, n, st.Fired)
		require.Zero(t, st.EmptyWakeups)
		// A timer moves down at most four levels.
		require.LessOrEqual(t, st.Wakeups, uint64(4*n))
		require.Equal(t, st.Wakeups, s.Stats().Wakeups)
	})
	t.Run("stopped", func(t *testing.T) {
		s, clk := virtual(t)
		var hs []timer.Handle
		for i := range 1000 {
			hs = append(hs, start(t, s, time.Duration(1+i)*time.Minute, func() {}))
		}
		start(t, s, 5000*time.Minute, func() {})
		for _, h := range hs {
			require.True(t, h.Stop())
		}
		clk.Advance(2000 * time.Minute)
		// The poller wakes up for the bucket that its alarm was set for, and for no
		// other.
		require.LessOrEqual(t, s.Stats().Wakeups, uint64(1))
	})
	t.Run("moved later", func(t *testing.T) {
		s, clk := virtual(t)
		h := start(t, s, time.Second, func() {})
		for range 1000 {
			clk.Advance(100 * time.Millisecond)
			require.True(t, h.Move(time.Second))
		}
		st := s.Stats()
		// The alarm goes off at most about three times a second for 100 seconds.
		require.LessOrEqual(t, st.Wakeups, uint64(3*100))
	})
}

// The wall clock is set. Timers that were started with a duration are not affected.
func TestGuarantee10_WallClockJumps(t *testing.T) {
	s, clk := virtual(t)
	var ran []time.Duration
	f := func() { ran = append(ran, clk.Now().Sub(epoch)) }
	start(t, s, time.Hour, f)
	h := start(t, s, time.Minute, f)
	tm := s.NewTimer(2 * time.Hour)
	tick := s.NewTicker(90 * time.Minute)
	for i, jump := range []time.Duration{87600 * time.Hour, -2 * 87600 * time.Hour, time.Hour, -time.Second} {
		clk.SetWall(clk.Wall().Add(jump))
		clk.Advance(time.Second)
		start(t, s, time.Duration(1+i)*time.Second, f)
	}
	require.True(t, h.Move(time.Minute))
	clk.SetWall(epoch.Add(-87600 * time.Hour))
	clk.Advance(2*time.Hour - 4*time.Second)
	require.Equal(t, []time.Duration{2 * time.Second, 4 * time.Second, 6 * time.Second, 8 * time.Second,
		64 * time.Second, time.Hour}, ran)
	require.Equal(t, epoch.Add(2*time.Hour), <-tm.C)
	require.Equal(t, epoch.Add(90*time.Minute), <-tick.C)
}

// resources returns the number of goroutines and, on Linux, of open file descriptors.
func resources(t testing.TB) (goroutines, descriptors int) {
	if runtime.GOOS == "linux" {
		es, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		descriptors = len(es)
	}
	return runtime.NumGoroutine(), descriptors
}

// released waits until there are no more goroutines and descriptors than the given
// numbers.
func released(t testing.TB, when string, goroutines, descriptors int) {
	t.Helper()
	var g, d int
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if g, d = resources(t); g <= goroutines && d <= descriptors {
			return
		}
	}
	buf := make([]byte, 1<<16)
	t.Fatalf("%s: %d goroutines and %d descriptors, not %d and %d:\n%s", when, g, d, goroutines, descriptors, buf[:runtime.Stack(buf, true)])
}

// settled waits until goroutines and descriptors of earlier tests are gone, and returns
// the numbers that remain.
func settled(t testing.TB) (goroutines, descriptors int) {
	// The first alarm starts the runtime's network poller, which has descriptors.
	s := timer.New()
	start(t, s, time.Hour, func() {})
	require.NoError(t, s.Shutdown(context.Background()))
	g, d := resources(t)
	for range 100 {
		time.Sleep(2 * time.Millisecond)
		if g2, d2 := resources(t); g2 != g || d2 != d {
			g, d = g2, d2
		}
	}
	return g, d
}

// This test has no subtests: a subtest has two goroutines, which would be counted.
func TestGuarantee11_NothingLeft(t *testing.T) {
	goroutines, descriptors := settled(t)
	// set starts a timer, and requires that its alarm uses descriptors, with a goroutine each.
	// If the alarm was late, it uses no descriptor for 2 s: then set tries again. It does
	// not try sooner, because the alarm goes off after each try, and may be late again.
	set := func(s *timer.Scheduler) timer.Handle {
		t.Helper()
		for ; ; time.Sleep(2200 * time.Millisecond) {
			h := start(t, s, 900*time.Millisecond, func() {})
			g, d := resources(t)
			if runtime.GOOS != "linux" || d > descriptors && g-goroutines == d-descriptors {
				return h
			}
			t.Logf("%d goroutines and %d descriptors while the alarm is set, beside %d and %d without", g, d, goroutines, descriptors)
			h.Stop()
		}
	}
	nothingLeft := func(when string) {
		t.Helper()
		released(t, when, goroutines, descriptors)
	}
	for name, e := range executors() {
		s := timer.New(timer.WithExecutor(e()))
		start(t, s, time.Hour, func() {})
		nothingLeft(name + ": what is due is far away")
		set(s)
		require.Len(t, closeAll(s), 2)
		nothingLeft(name + ": closed while the alarm is set")

		s = timer.New(timer.WithExecutor(e()))
		begun, hang := make(chan bool, 100), make(chan struct{})
		for range 100 {
			start(t, s, time.Millisecond, func() { begun <- true; <-hang })
		}
		start(t, s, time.Hour, func() {})
		<-begun
		time.AfterFunc(time.Millisecond, func() { close(hang) })
		require.NoError(t, s.Shutdown(context.Background()))
		require.Zero(t, s.Stats().Queued)
		// The callbacks have returned, but their goroutines may still exist for a moment.
		nothingLeft(name + ": shut down while callbacks run")
		require.GreaterOrEqual(t, len(closeAll(s)), 1)

		s = timer.New(timer.WithExecutor(e()))
		for i := range 100 {
			start(t, s, time.Duration(i)*100*time.Microsecond, func() {})
		}
		for s.Stats().Fired < 100 {
			time.Sleep(time.Millisecond)
		}
		nothingLeft(name + ": all have fired")
		s.Close()

		s = timer.New(timer.WithExecutor(e()))
		hs := []timer.Handle{set(s)}
		for i := range 99 {
			hs = append(hs, start(t, s, time.Duration(i+1)*time.Minute, func() {}))
		}
		for i, h := range hs {
			if i%2 == 0 {
				require.True(t, h.Stop())
			} else {
				require.True(t, h.Move(0))
			}
		}
		// No timer has fired yet.
		nothingLeft(name + ": all were stopped or reset")
		start(t, s, 900*time.Millisecond, func() {})
		s.Close()
		nothingLeft(name + ": closed then")
	}
	timer.AfterFunc(time.Second, func() {}).Stop()
	nothingLeft("the default Scheduler")
}

// A closed Scheduler is garbage, even if a timer was due only in an hour.
func TestGuarantee11_ClosedIsGarbage(t *testing.T) {
	s := timer.New()
	start(t, s, time.Hour, func() {})
	p := weak.Make(s)
	s.Close()
	s = nil
	for tries := 0; p.Value() != nil; tries++ {
		require.Less(t, tries, 1000, "it is still reachable")
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}

// The last Timer is reset to fire at once. Then the Scheduler is garbage, although the
// old deadline has not come.
func TestGuarantee11_ResetToThePresentIsGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		tm := s.AfterFunc(time.Hour, func() {})
		tm.Reset(time.Hour) // moves the Timer itself into the wheel
		tm.Reset(time.Hour)
		tm.Reset(0)
		p := weak.Make(s)
		s, tm = nil, nil
		time.Sleep(time.Minute) // until the shard has given back its memory
		synctest.Wait()
		for tries := 0; p.Value() != nil; tries++ {
			require.Less(t, tries, 10, "it is still reachable")
			runtime.GC()
		}
	})
}

// everything uses all methods of a Scheduler and requires exact times.
func everything(t *testing.T, s *timer.Scheduler, now func() time.Time, wait func(time.Duration)) {
	begin := now()
	var mu sync.Mutex
	ran := make(map[string]time.Duration)
	mark := func(name string) func() {
		return func() {
			mu.Lock()
			defer mu.Unlock()
			ran[name] = now().Sub(begin)
		}
	}
	start(t, s, time.Hour, mark("Start"))
	h := start(t, s, time.Hour, mark("Reset"))
	require.True(t, h.Move(time.Minute))
	require.True(t, start(t, s, time.Hour, mark("Stop")).Stop())
	start(t, s, 0, mark("at once"))
	s.AfterFunc(90*time.Minute, mark("AfterFunc"))
	tm, after := s.NewTimer(10*time.Minute), s.After(20*time.Minute)
	tick := s.NewTicker(25 * time.Minute)
	up := make(chan struct{})
	go func() {
		s.Sleep(70 * time.Minute)
		mark("Sleep")()
		close(up)
	}()
	for s.Len() < 7 {
		runtime.Gosched() // lets Sleep begin now
	}
	wait(2 * time.Hour)
	<-up
	tick.Stop()
	mu.Lock()
	defer mu.Unlock()
	// Under a virtual clock, the clock may move on before the goroutine in Sleep runs, so
	// the time cannot be checked.
	bubble := time.Now() == time.Now().Round(0)
	for name, want := range map[string]time.Duration{
		"Start": time.Hour, "Reset": time.Minute, "at once": 0, "AfterFunc": 90 * time.Minute,
		"Sleep": 70 * time.Minute,
	} {
		got, ok := ran[name]
		require.True(t, ok, "%s has not run", name)
		if bubble || name != "Sleep" {
			require.Equal(t, want, got, name)
		}
	}
	require.NotContains(t, ran, "Stop")
	require.Equal(t, begin.Add(10*time.Minute), <-tm.C)
	require.Equal(t, begin.Add(20*time.Minute), <-after)
	require.NoError(t, s.Shutdown(context.Background()))
	balanced(t, s.Stats())
	require.Zero(t, s.Len())
}

func TestGuarantee12_VirtualClockAndBubble(t *testing.T) {
	t.Run("virtual", func(t *testing.T) {
		s, clk := virtual(t)
		everything(t, s, clk.Now, clk.Advance)
	})
	t.Run("bubble", func(t *testing.T) {
		for name, e := range executors() {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					everything(t, timer.New(timer.WithExecutor(e())), time.Now, func(d time.Duration) {
						time.Sleep(d)
						synctest.Wait()
					})
				})
			})
		}
	})
	t.Run("the same order every time", func(t *testing.T) {
		var first []int
		for range 5 {
			s, clk := virtual(t, timer.WithWheelSize(4))
			rng := rand.New(rand.NewPCG(1, 2))
			var order []int
			for i := range 2000 {
				h := start(t, s, time.Duration(rng.IntN(int(time.Second))), func() { order = append(order, i) })
				if i%5 == 0 {
					h.Move(time.Duration(rng.IntN(int(time.Second))))
				}
			}
			clk.Advance(time.Minute)
			require.Len(t, order, 2000)
			if first == nil {
				first = order
			}
			require.Equal(t, first, order)
		}
	})
}
