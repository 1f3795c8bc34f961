package timer_test

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

// Tests for bugs of timers in other languages: Netty, Akka, tokio, Caffeine, Folly and
// wahern/timeout.

// An oversleepingClock lets its alarms go off too late, and only when the test calls
// oversleep.
type oversleepingClock struct {
	mu     sync.Mutex
	now    time.Time
	alarms []*oversleeper
}

type oversleeper struct {
	c    *oversleepingClock
	f    func()
	set  bool
	when time.Time
}

func (c *oversleepingClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *oversleepingClock) NewAlarm(f func()) clock.Alarm {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &oversleeper{c: c, f: f}
	c.alarms = append(c.alarms, a)
	return a
}

func (a *oversleeper) Reset(d time.Duration) {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.set, a.when = true, a.c.now.Add(d)
}

func (a *oversleeper) Stop() {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.set = false
}

// oversleep advances the clock by d, and then calls the functions of alarms that are due.
func (c *oversleepingClock) oversleep(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	for again := true; again; {
		again = false
		for _, a := range c.alarms {
			if a.set && !a.when.After(c.now) {
				a.set, again = false, true
				c.mu.Unlock()
				a.f()
				c.mu.Lock()
			}
		}
	}
	c.mu.Unlock()
}

// In Netty, cancelled timeouts stayed in memory until their slot expired. Many of them
// filled the memory.
func TestNetty2541And5647_StoppedTimersLeaveAtOnce(t *testing.T) {
	s, _ := virtual(t)
	start(t, s, time.Hour, func() {}).Stop() // allocates the first chunk
	before := heap()
	var last weak.Pointer[object]
	for range 200_000 {
		o := new(object)
		last = weak.Make(o)
		require.True(t, start(t, s, time.Hour, func() { o.n++ }).Stop())
	}
	require.Zero(t, s.Len())
	require.Less(t, heap()-before, int64(1e6))
	gone(t, map[string][]weak.Pointer[object]{"stopped": {last}})
	runtime.KeepAlive(s)
}

// In Netty, a cancelled timeout was subtracted from the count twice. Then the timer
// accepted more timeouts than its limit.
func TestNetty14959_PendingIsCountedOnce(t *testing.T) {
	const limit = 10
	s, clk := virtual(t, timer.WithMaxPending(limit))
	var hs []timer.Handle
	fill := func() {
		t.Helper()
		for s.Len() < limit {
			hs = append(hs, start(t, s, time.Second, func() {}))
		}
		_, err := s.Start(time.Second, func() {})
		require.ErrorIs(t, err, timer.ErrTooManyPending)
		require.Equal(t, limit, s.Len())
	}
	fill()
	for _, h := range hs[:5] { // each Stop makes room for one timer
		require.True(t, h.Stop())
		require.False(t, h.Stop())
		require.False(t, h.Move(0))
	}
	require.Equal(t, limit-5, s.Len())
	fill()
	clk.Advance(time.Second) // firing makes room too
	require.Zero(t, s.Len())
	for _, h := range hs {
		require.False(t, h.Stop())
	}
	fill()
	require.True(t, hs[len(hs)-1].Move(0)) // moving a timer to now makes room too
	clk.Advance(0)
	require.Equal(t, limit-1, s.Len())
	fill()
	s.Close()
	for _, h := range hs {
		require.False(t, h.Stop())
	}
	require.Zero(t, s.Len())
	balanced(t, s.Stats())
}

// Many goroutines start timers that are due at once or soon. Each callback starts the
// next timer.
func TestAkka_ViciousEnqueueing(t *testing.T) {
	s := timer.New(timer.WithWheelSize(2))
	const chains, length = 64, 300
	var ran atomic.Int64
	var wg sync.WaitGroup
	wg.Add(chains)
	var link func(i, left int) func()
	link = func(i, left int) func() {
		return func() {
			ran.Inc()
			if left == 0 {
				wg.Done()
				return
			}
			// The delays are from -20 to 140 microseconds: at once, or up to two ticks.
			if _, err := s.Start(time.Duration((i*left)%9-1)*20*time.Microsecond, link(i, left-1)); err != nil {
				t.Error(err)
				wg.Done()
			}
		}
	}
	for i := range chains {
		go link(i, length-1)()
	}
	wg.Wait()
	require.NoError(t, s.Shutdown(context.Background()))
	require.EqualValues(t, chains*length, ran.Load())
	balanced(t, s.Stats())
}

// The poller sleeps an hour too long. Then many buckets are due at once.
func TestAkka_PollerOversleeps(t *testing.T) {
	clk := &oversleepingClock{now: epoch}
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()), timer.WithTick(time.Millisecond), timer.WithWheelSize(4))
	defer s.Close()
	var got []int
	var want []int
	for i := range 1000 {
		start(t, s, time.Duration(1+i)*7*time.Millisecond, func() { got = append(got, i) })
		want = append(want, i)
	}
	clk.oversleep(time.Hour)
	require.Equal(t, want, got, "all at once, in the order of their deadlines")
	// The wheel's clock has caught up: the next timer fires in time.
	ran := false
	start(t, s, time.Millisecond, func() { ran = true })
	clk.oversleep(time.Millisecond - 1)
	require.False(t, ran)
	clk.oversleep(1)
	require.True(t, ran)
}

// The clock comes close to the largest int64 of nanoseconds.
func TestAkka_ClockNearTheEnd(t *testing.T) {
	for _, tick := range []time.Duration{1, 7, time.Millisecond, time.Hour} {
		s, clk := virtual(t, timer.WithTick(tick), timer.WithWheelSize(4))
		ran := 0
		for range 100 { // only some of these fall due
			start(t, s, math.MaxInt64, func() { t.Error("a timer beyond the clock's end has fired") })
		}
		clk.Advance(math.MaxInt64 - 10*time.Hour)
		for i := range 9 {
			start(t, s, time.Duration(i)*time.Hour, func() { ran++ })
		}
		for range 50 {
			start(t, s, 11*time.Hour, func() { t.Error("a timer beyond the clock's end has fired") })
		}
		clk.Advance(10*time.Hour - 1)
		require.Equal(t, 9, ran)
		require.Equal(t, 150, s.Len())
	}
}

// In tokio, a timer was reset to a later time while it expired, and fired at the old
// time. Here callbacks move timers that are due at the same moment.
func TestTokio_ResetLaterRacesExpiry(t *testing.T) {
	s, clk := virtual(t)
	const n = 1000
	hs := make([]timer.Handle, n)
	due := make([]time.Time, n)
	ran := make([]bool, n)
	moved := 0
	for i := range hs {
		due[i] = epoch.Add(time.Second)
		hs[i] = start(t, s, time.Second, func() {
			require.False(t, ran[i])
			require.Equal(t, due[i], clk.Now())
			ran[i] = true
			if j := (i*7 + 300) % n; hs[j].Move(time.Minute) {
				require.False(t, ran[j])
				due[j] = clk.Now().Add(time.Minute)
				moved++
			}
		})
	}
	clk.Advance(time.Second)
	require.NotZero(t, moved)
	require.Equal(t, moved, s.Len())
	clk.Advance(time.Hour)
	require.NotContains(t, ran, false)
}

// In tokio, the last timer was removed while the driver slept until its deadline. Then
// the driver missed the next timer.
func TestTokio_RemoveTheLastWhileThePollerSleeps(t *testing.T) {
	s := timer.New()
	defer s.Close()
	for _, d := range []time.Duration{time.Millisecond, 3 * time.Millisecond, time.Hour} {
		for range 20 {
			h := start(t, s, d, func() {})
			h.Stop()
			ran := make(chan bool)
			start(t, s, 2*time.Millisecond, func() { close(ran) })
			<-ran
		}
	}
}

// In tokio, the driver missed a wake-up after it had stored the next expiry and before it
// slept.
func TestTokio_StartWhileThePollerFallsAsleep(t *testing.T) {
	s := timer.New()
	defer s.Close()
	start(t, s, time.Hour, func() {})
	ran := make(chan bool)
	for i := range 500 {
		// After this timer the poller falls asleep. The next timer is started just then.
		start(t, s, time.Microsecond, func() { ran <- true })
		<-ran
		for range i % 300 {
			runtime.Gosched()
		}
		start(t, s, time.Duration(i%3)*time.Microsecond, func() { ran <- true })
		<-ran // never, if the wake-up was missed
	}
}

// The wheel of wahern/timeout may expect its next timer too early, but never too late.
// Here no timer is early or late, and none fires twice.
func TestWahern_TheHintIsNeverLate(t *testing.T) {
	for _, size := range []int{2, 8, 256} {
		s, clk := virtual(t, timer.WithTick(time.Millisecond), timer.WithWheelSize(size), timer.WithShards(2))
		rng := rand.New(rand.NewPCG(uint64(size), 3))
		type pending struct {
			h   timer.Handle
			due time.Time
		}
		all := make(map[int]pending)
		for i := range 5000 {
			switch rng.IntN(4) {
			case 0, 1:
				d := time.Duration(1 + rng.Int64N(1<<(10+rng.IntN(35))))
				due := clk.Now().Add(d)
				h := start(t, s, d, func() {
					p, ok := all[i]
					require.True(t, ok, "ran twice, or after it was stopped")
					late := clk.Now().Sub(p.due)
					require.True(t, late >= 0 && late < time.Millisecond, "late by %v", late)
					delete(all, i)
				})
				all[i] = pending{h, due}
			case 2:
				for j, p := range all {
					require.True(t, p.h.Stop())
					delete(all, j)
					break
				}
			case 3:
				clk.Advance(time.Duration(rng.Int64N(1 << (10 + rng.IntN(25)))))
			}
			for _, p := range all {
				next, ok := clk.Next()
				require.True(t, ok)
				require.False(t, next.After(p.due.Add(time.Millisecond)))
			}
		}
		clk.Advance(math.MaxInt64 / 2)
		require.Empty(t, all)
	}
}

// In Caffeine, an exception in the middle of a flush lost the other timers of the bucket.
func TestCaffeine_PanicInTheMiddleOfAFlush(t *testing.T) {
	for _, d := range []time.Duration{1, 100} { // on the lowest level, and from a higher one
		panics := 0
		s, clk := virtual(t, timer.WithTick(1), timer.WithWheelSize(4),
			timer.WithPanicHandler(func(any, []byte) { panics++ }))
		ran := 0
		for i := range 1000 {
			start(t, s, d+time.Duration(i%2), func() {
				if i%3 == 0 {
					panic(i)
				}
				ran++
			})
		}
		clk.Advance(d + 1)
		require.Equal(t, 334, panics)
		require.Equal(t, 666, ran)
		require.Zero(t, s.Len())
	}
}

// A callback stops another timer of the batch that is firing, as in Folly.
func TestFolly_CancelAnotherOfTheSameBatch(t *testing.T) {
	s, clk := virtual(t)
	for _, n := range []int{2, 100, 1000} {
		hs := make([]timer.Handle, n)
		ran, stopped := make([]bool, n), make([]bool, n)
		for i := range hs {
			hs[i] = start(t, s, time.Second, func() {
				ran[i] = true
				stopped[n-1-i] = hs[n-1-i].Stop() || stopped[n-1-i]
			})
		}
		clk.Advance(time.Second)
		for i := range hs {
			require.NotEqual(t, ran[i], stopped[i], "timer %d of %d", i, n)
		}
		require.Equal(t, n > 512, stopped[n-1], "timers of the first batch must fire together")
	}
}
