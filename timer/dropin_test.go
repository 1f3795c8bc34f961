package timer_test

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/timer"
)

// newRand returns a random generator. Its seed is TICKLESS_SEED, or a new seed that is
// logged.
func newRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	if v := os.Getenv("TICKLESS_SEED"); v != "" {
		var err error
		seed, err = strconv.ParseUint(v, 10, 64)
		require.NoError(t, err, "TICKLESS_SEED")
	}
	t.Logf("TICKLESS_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// receive receives a value if one is available.
func receive[T any](c <-chan T) (v T, ok bool) {
	select {
	case v, ok = <-c:
		return v, ok
	default:
		return v, false
	}
}

func requireEmpty[T any](t testing.TB, c <-chan T, msg string) {
	t.Helper()
	v, ok := receive(c)
	require.False(t, ok, "%s: received %v", msg, v)
}

// A Timer and a time.Timer get the same random calls in a bubble. They must have the same
// results.
func TestTimer_SameAsPackageTime(t *testing.T) {
	rng := newRand(t)
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			s := timer.New(timer.WithTick(1), timer.WithWheelSize(8))
			defer s.Close()
			d := time.Duration(rng.IntN(20) - 2)
			theirs, ours := time.NewTimer(d), s.NewTimer(d)
			defer theirs.Stop()
			for range 100 {
				synctest.Wait()
				switch rng.IntN(8) {
				case 0, 1:
					require.Equal(t, theirs.Stop(), ours.Stop(), "Stop")
				case 2, 3, 4:
					d := time.Duration(rng.IntN(20) - 2)
					require.Equal(t, theirs.Reset(d), ours.Reset(d), "Reset(%d)", d)
				case 5:
					want, ok := receive(theirs.C)
					got, gotOK := receive(ours.C)
					require.Equal(t, ok, gotOK, "receive")
					require.Equal(t, want, got, "received")
				default:
					time.Sleep(time.Duration(rng.IntN(20)))
				}
			}
		})
	}
}

func TestTicker_SameAsPackageTime(t *testing.T) {
	rng := newRand(t)
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			s := timer.New(timer.WithTick(1), timer.WithWheelSize(8))
			defer s.Close()
			d := time.Duration(1 + rng.IntN(20))
			theirs, ours := time.NewTicker(d), s.NewTicker(d)
			defer theirs.Stop()
			defer ours.Stop()
			for range 100 {
				synctest.Wait()
				switch rng.IntN(12) {
				case 0:
					theirs.Stop()
					ours.Stop()
				case 1:
					d := time.Duration(1 + rng.IntN(20))
					theirs.Reset(d)
					ours.Reset(d)
				case 2, 3, 4, 5, 6:
					want, ok := receive(theirs.C)
					got, gotOK := receive(ours.C)
					require.Equal(t, ok, gotOK, "receive")
					require.Equal(t, want, got, "received")
				case 7:
					time.Sleep(time.Duration(rng.IntN(200))) // a slow reader
				default:
					time.Sleep(time.Duration(rng.IntN(20)))
				}
			}
		})
	}
}

func TestAfterFunc_SameAsPackageTime(t *testing.T) {
	rng := newRand(t)
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			s := timer.New(timer.WithTick(1), timer.WithWheelSize(8))
			defer s.Close()
			var want, got []time.Time
			d := time.Duration(rng.IntN(20) - 2)
			theirs := time.AfterFunc(d, func() { want = append(want, time.Now()) })
			ours := s.AfterFunc(d, func() { got = append(got, time.Now()) })
			defer theirs.Stop()
			for range 100 {
				synctest.Wait()
				switch rng.IntN(6) {
				case 0, 1:
					require.Equal(t, theirs.Stop(), ours.Stop(), "Stop")
				case 2, 3:
					d := time.Duration(rng.IntN(20) - 2)
					require.Equal(t, theirs.Reset(d), ours.Reset(d), "Reset(%d)", d)
				default:
					time.Sleep(time.Duration(rng.IntN(20)))
				}
			}
			synctest.Wait()
			require.Equal(t, want, got, "runs")
		})
	}
}

func TestTimer_AValueNotReceivedIsWithdrawn(t *testing.T) {
	s, clk := virtual(t)
	tm := s.NewTimer(time.Second)
	clk.Advance(time.Minute)
	require.True(t, tm.Stop(), "the value had not been received")
	requireEmpty(t, tm.C, "after Stop")
	require.False(t, tm.Stop())
	require.False(t, tm.Reset(time.Second), "it was stopped")
	clk.Advance(time.Second)
	require.True(t, tm.Reset(time.Second), "the value had not been received")
	requireEmpty(t, tm.C, "after Reset")
	clk.Advance(time.Second)
	v, ok := receive(tm.C)
	require.True(t, ok)
	require.Equal(t, epoch.Add(62*time.Second), v)
	require.False(t, tm.Reset(time.Second), "the value had been received")
	require.True(t, tm.Reset(0), "it was active")
	require.True(t, tm.Reset(0), "its value had not been received")
	require.True(t, tm.Stop())
	requireEmpty(t, tm.C, "after Stop")
	balanced(t, s.Stats())
}

// Stop or Reset races with firing on the system's clock.
func TestTimer_NoValueFromBeforeStopOrReset_Race(t *testing.T) {
	s := timer.New(timer.WithTick(time.Microsecond))
	defer s.Close()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			tm := s.NewTimer(time.Hour)
			for range 4000 {
				tm.Reset(time.Duration(rng.IntN(100_000)))
				for spin := rng.IntN(3000); spin > 0; spin-- {
				}
				switch rng.IntN(3) {
				case 0:
					active := tm.Stop()
					if v, ok := receive(tm.C); ok {
						t.Errorf("received %v after Stop, which reported %v", v, active)
					}
				case 1:
					tm.Reset(time.Hour)
					if v, ok := receive(tm.C); ok {
						t.Errorf("received %v after Reset", v)
					}
				case 2:
					// Exactly one of three things happens: receive gets the value, Stop
					// removes the value from the channel, or Stop prevents sending it.
					_, got := receive(tm.C)
					if active := tm.Stop(); active == got {
						t.Errorf("received: %v, Stop: %v", got, active)
					}
				}
			}
			tm.Stop()
		})
	}
	wg.Wait()
	balanced(t, s.Stats())
	require.Zero(t, s.Len())
}

// Several goroutines stop and reset one timer. Each start sends at most one value. No
// value is received after the last Stop.
func TestTimer_StopAndResetAtOnce(t *testing.T) {
	s := timer.New(timer.WithTick(time.Microsecond))
	defer s.Close()
	for round := range 20 {
		tm := s.NewTimer(time.Duration(round) * 10 * time.Microsecond)
		var runs, starts, stops atomic.Int64
		fn := s.AfterFunc(time.Duration(round)*10*time.Microsecond, func() { runs.Inc() })
		starts.Inc()
		quit, gone := make(chan struct{}), make(chan struct{})
		var received, resets atomic.Int64
		go func() {
			defer close(gone)
			for {
				select {
				case <-tm.C:
					received.Inc()
				case <-quit:
					return
				}
			}
		}()
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(round), uint64(g)))
				for range 200 {
					if rng.IntN(2) == 0 {
						tm.Stop()
						if fn.Stop() {
							stops.Inc()
						}
					} else {
						d := time.Duration(rng.IntN(20_000) - 1000)
						resets.Inc()
						tm.Reset(d)
						if !fn.Reset(d) {
							starts.Inc()
						}
					}
				}
			})
		}
		wg.Wait()
		tm.Stop()
		if fn.Stop() {
			stops.Inc()
		}
		close(quit)
		<-gone
		requireEmpty(t, tm.C, "after the last Stop")
		require.LessOrEqual(t, received.Load(), resets.Load()+1)
		// Each start that was not stopped runs once. The last runs may not have ended
		// yet.
		for runs.Load() < starts.Load()-stops.Load() {
			time.Sleep(100 * time.Microsecond)
		}
		require.Equal(t, starts.Load()-stops.Load(), runs.Load())
	}
	balanced(t, s.Stats())
}

func TestTimer_ValueIsTheTimeOfFiring(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(time.Millisecond))
	a, b := s.NewTimer(1500*time.Microsecond), s.NewTimer(time.Hour)
	clk.Advance(2 * time.Hour)
	require.Equal(t, epoch.Add(2*time.Millisecond), <-a.C)
	require.Equal(t, epoch.Add(time.Hour), <-b.C)

	onSystemClock := timer.New()
	defer onSystemClock.Close()
	for i := range 20 {
		d := time.Duration(i) * time.Millisecond / 4
		before := time.Now()
		v := <-onSystemClock.After(d)
		require.False(t, v.Before(before.Add(d)), "early by %v", before.Add(d).Sub(v))
		require.False(t, v.After(time.Now()))
	}
}

func TestTimer_ZeroAndNegativeDelaysFireAtOnce(t *testing.T) {
	s, clk := virtual(t)
	for _, d := range []time.Duration{0, -1, -time.Hour, math.MinInt64} {
		// The clock need not advance: the value is available when NewTimer returns.
		v, ok := receive(s.NewTimer(d).C)
		require.True(t, ok, "NewTimer(%d)", d)
		require.Equal(t, epoch, v)
		_, ok = receive(s.After(d))
		require.True(t, ok, "After(%d)", d)
		tm := s.NewTimer(time.Hour)
		require.True(t, tm.Reset(d))
		_, ok = receive(tm.C)
		require.True(t, ok, "Reset(%d)", d)
		require.False(t, tm.Reset(d))
		require.True(t, tm.Stop(), "withdrawn")
		ran := false
		s.AfterFunc(d, func() { ran = true })
		require.False(t, ran, "inside AfterFunc")
		clk.Advance(0)
		require.True(t, ran)
	}
	require.Zero(t, s.Len())
	balanced(t, s.Stats())
}

func TestTimer_DelaysSaturate(t *testing.T) {
	s, clk := virtual(t)
	clk.Advance(time.Hour)
	forever := s.NewTimer(math.MaxInt64)
	tick := s.NewTicker(math.MaxInt64)
	defer tick.Stop()
	again := s.NewTimer(time.Second)
	require.True(t, again.Reset(math.MaxInt64-1))
	soon := s.NewTimer(time.Second)
	clk.Advance(250 * 365 * 24 * time.Hour)
	requireEmpty(t, forever.C, "NewTimer")
	requireEmpty(t, tick.C, "NewTicker")
	requireEmpty(t, again.C, "Reset")
	_, ok := receive(soon.C)
	require.True(t, ok, "others go on")
	require.True(t, forever.Stop())
	require.True(t, again.Stop())
}

// The function of AfterFunc may call the methods of its Timer.
func TestAfterFunc_ResetAndStopFromInside(t *testing.T) {
	s, clk := virtual(t)
	var at []time.Duration
	var tm *timer.Timer
	tm = s.AfterFunc(time.Second, func() {
		at = append(at, clk.Now().Sub(epoch))
		if len(at) < 3 {
			require.False(t, tm.Reset(time.Second))
		} else {
			require.False(t, tm.Stop())
		}
	})
	clk.Advance(time.Minute)
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, at)
}

func TestTimer_OnAClosedScheduler(t *testing.T) {
	s, clk := virtual(t)
	fired, pending := s.NewTimer(time.Second), s.NewTimer(time.Hour)
	tick := s.NewTicker(time.Hour)
	clk.Advance(time.Second)
	require.Len(t, closeAll(s), 2)
	require.True(t, fired.Reset(time.Second), "the value had not been received")
	requireEmpty(t, fired.C, "after Reset")
	require.False(t, pending.Stop(), "it was handed back")
	clk.Advance(2 * time.Hour)
	requireEmpty(t, pending.C, "it was handed back")
	requireEmpty(t, tick.C, "it was handed back")
	require.Len(t, fired.C, 1, "what is started afterwards falls back to the clock's alarm")
	require.False(t, pending.Reset(time.Second))
	require.True(t, pending.Reset(2*time.Second))
	ran := 0
	s.AfterFunc(time.Second, func() { ran++ })
	stopped := s.AfterFunc(time.Second, func() { t.Error("ran") })
	panics := s.AfterFunc(time.Second, nil)
	require.True(t, stopped.Stop())
	tick.Reset(time.Second)
	c, after := s.NewTicker(time.Second).C, s.After(time.Second)
	now := clk.Now()
	clk.Advance(time.Second)
	for name, c := range map[string]<-chan time.Time{"NewTicker": c, "Ticker.Reset": tick.C, "After": after} {
		at, ok := receive(c)
		require.True(t, ok, name)
		require.Equal(t, now.Add(time.Second), at, name)
	}
	requireEmpty(t, pending.C, "later")
	require.Equal(t, 1, ran)
	require.False(t, panics.Stop())
	clk.Advance(time.Second)
	require.Len(t, pending.C, 1)
	require.Len(t, c, 1)
	tick.Stop()
	require.Empty(t, tick.C)
	st := s.Stats()
	require.EqualValues(t, 9, st.FellBack, "%+v", st)
	require.Zero(t, st.Rejected)
	require.EqualValues(t, 1, st.Panicked)
	balanced(t, st)
}

// A timer races with Close: it fires, or TakeLeftover returns it, but never both.
func TestTimer_CloseRace(t *testing.T) {
	for range 50 {
		s := timer.New(timer.WithTick(time.Microsecond))
		var fired atomic.Int64
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for i := range 100 {
					s.AfterFunc(time.Duration(i)*time.Microsecond, func() { fired.Inc() })
					if tk := s.NewTicker(time.Duration(1+i) * time.Microsecond); i%2 == 1 {
						defer tk.Stop() // on a closed Scheduler it ticks until Stop
					} else {
						tk.Reset(time.Hour)
					}
				}
			})
		}
		handed := len(closeAll(s))
		wg.Wait()
		require.NoError(t, s.Shutdown(t.Context()))
		handed += len(closeAll(s))
		st := s.Stats()
		require.EqualValues(t, handed, st.HandedBack)
		require.Zero(t, st.Pending)
		balanced(t, st)
	}
}

// Users may assign to the field C, as Go's own tests do. The Timer works as before.
func TestTimer_CIsTheUsersToChange(t *testing.T) {
	s, clk := virtual(t)
	n := 0
	f := s.AfterFunc(time.Second, func() { n++ })
	f.C = make(chan time.Time)
	for range 3 {
		clk.Advance(time.Second)
		require.False(t, f.Reset(time.Second))
	}
	require.True(t, f.Stop())
	require.Equal(t, 3, n)
	tm := s.NewTimer(time.Second)
	c := tm.C
	for _, own := range []<-chan time.Time{nil, make(chan time.Time, 1)} {
		tm.C = own
		clk.Advance(time.Second)
		require.Len(t, c, 1)
		require.True(t, tm.Reset(time.Second), "withdrawn")
		require.Empty(t, c)
	}
	require.True(t, tm.Stop())
}
