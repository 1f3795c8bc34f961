package timer_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// advanceTo advances the clock to end, in steps from one due time to the next.
func advanceTo(clk *timertest.Clock, end time.Time) {
	for clk.Now().Before(end) {
		clk.Advance(min(100*time.Microsecond, end.Sub(clk.Now())))
	}
}

// A timer with slack fires within its window: from its deadline until its slack has
// passed.
func TestSlack_FiresInItsWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s, clk := virtual(t, timer.WithSlack(0.1, time.Millisecond, 20*time.Millisecond), timer.WithShards(4))
	begin := clk.Now()
	late, own := 0, 0
	for range 2000 {
		d := time.Duration(rng.Int64N(int64(500 * time.Millisecond)))
		slack := min(max(d/10, time.Millisecond), 20*time.Millisecond)
		check := func() {
			at := clk.Now().Sub(begin)
			require.GreaterOrEqual(t, at, d)
			require.LessOrEqual(t, at, d+slack+timer.DefaultTick)
			if at > d+timer.DefaultTick {
				late++
			}
		}
		if rng.IntN(2) == 0 {
			start(t, s, d, check)
			continue
		}
		own++
		slack = time.Duration(rng.Int64N(int64(50 * time.Millisecond)))
		h, err := s.StartWithin(d, slack, check)
		require.NoError(t, err)
		if rng.IntN(2) == 0 && d > 0 {
			d = time.Duration(1 + rng.Int64N(int64(500*time.Millisecond)))
			require.True(t, h.MoveWithin(d, slack))
		}
	}
	advanceTo(clk, begin.Add(600*time.Millisecond))
	require.Zero(t, s.Len())
	require.Greater(t, late, 1000, "most timers must wait for others")
	require.LessOrEqual(t, s.Stats().Lateness.Max(), timer.DefaultTick, "lateness must count from the due time, not the deadline")
}

// Timers whose windows overlap fire in one wake-up, even on different shards.
func TestSlack_SharesWakeups(t *testing.T) {
	for _, shards := range []int{1, 16} {
		s, clk := virtual(t, timer.WithSlack(0.01, 0, time.Second), timer.WithShards(shards))
		begin := clk.Now()
		for i := range 1000 {
			start(t, s, time.Second+time.Duration(i)*time.Millisecond, func() {})
		}
		advanceTo(clk, begin.Add(3*time.Second))
		require.Zero(t, s.Len())
		// Each timer is due at a multiple of 9.6 ms or of 12.8 ms: on average, that is
		// one moment in 6.4 ms.
		require.LessOrEqual(t, s.Stats().Wakeups, uint64(1020*10/64+2))
	}
}

// Timers with equal slack fire only at the multiples of one step. The step is more than
// half of the slack.
func TestSlack_WakesOnAGridOfItsSize(t *testing.T) {
	for slack, step := range map[time.Duration]time.Duration{
		300 * time.Microsecond:  300 * time.Microsecond,
		time.Millisecond:        800 * time.Microsecond,
		1300 * time.Microsecond: 1200 * time.Microsecond,
		8 * time.Millisecond:    6400 * time.Microsecond,
		10 * time.Millisecond:   9600 * time.Microsecond,
		15 * time.Millisecond:   12800 * time.Microsecond,
		200 * time.Millisecond:  153600 * time.Microsecond,
		400 * time.Millisecond:  204800 * time.Microsecond,
	} {
		s, clk := virtual(t, timer.WithSlack(0, slack, slack), timer.WithShards(4))
		rng := rand.New(rand.NewPCG(5, 6))
		moments := map[time.Time]bool{}
		for range 500 { // so few that no bucket moves down before it is due
			start(t, s, time.Duration(rng.Int64N(int64(50*slack))), func() { moments[clk.Now()] = true })
		}
		clk.Advance(60 * slack)
		require.Zero(t, s.Len())
		most := int(51*slack/step) + 2
		require.LessOrEqual(t, len(moments), most, "%v", slack)
		require.LessOrEqual(t, s.Stats().Wakeups, uint64(most), "%v", slack)
	}
}

// A Timer is reset to a later deadline with a larger slack, and may thereby be due
// earlier. It must not wait for its old bucket.
func TestSlack_OfATimerThatIsReset(t *testing.T) {
	s, clk := virtual(t, timer.WithSlack(1, 0, time.Second))
	rng := rand.New(rand.NewPCG(7, 8))
	for range 3000 {
		d := time.Duration(rng.Int64N(int64(20 * time.Millisecond)))
		x := s.AfterFunc(time.Hour, func() {})
		x.Reset(time.Hour) // without slack, the wheel would hold the Timer from the second Reset on
		x.Stop()
		x.Reset(d)
		x.Reset(d + time.Duration(rng.Int64N(int64(2*time.Millisecond))))
		clk.Advance(time.Duration(rng.Int64N(int64(time.Millisecond))))
	}
	clk.Advance(time.Second)
	require.Zero(t, s.Len())
	require.LessOrEqual(t, s.Stats().Lateness.Max(), timer.DefaultTick)
	require.LessOrEqual(t, s.Stats().Wakeups, uint64(1000))
}

// With the default tick, timers with a slack of 10 ms share moments that are 9.6 ms
// apart: 104 in a second.
func TestSlack_FewMoments(t *testing.T) {
	const n, seconds = 20_000, 5
	s, clk := virtual(t, timer.WithShards(4))
	rng := rand.New(rand.NewPCG(1, 2))
	moments := map[time.Time]bool{}
	for range n {
		_, err := s.StartWithin(time.Duration(rng.Int64N(int64(seconds*time.Second))), 10*time.Millisecond, func() { moments[clk.Now()] = true })
		require.NoError(t, err)
		if rng.IntN(100) == 0 {
			clk.Advance(time.Duration(rng.IntN(10_000)))
		}
	}
	advanceTo(clk, clk.Now().Add((seconds+1)*time.Second))
	require.Zero(t, s.Len())
	require.LessOrEqual(t, len(moments), 104*seconds+3)
	require.Greater(t, len(moments), 100*seconds)
}

// A timer's own slack takes precedence over the Scheduler's, even if it is zero.
func TestSlack_OfTheTimersOwn(t *testing.T) {
	s, clk := virtual(t, timer.WithSlack(1, time.Second, time.Second))
	begin := clk.Now()
	var at time.Duration
	fired := func() { at = clk.Now().Sub(begin) }
	for _, c := range []struct {
		start func() (timer.Handle, error)
		exact bool
	}{
		{func() (timer.Handle, error) { return s.StartWithin(300*time.Microsecond, 0, fired) }, true},
		{func() (timer.Handle, error) { return s.StartWithin(300*time.Microsecond, -1, fired) }, true},
		{func() (timer.Handle, error) { return s.Start(300*time.Microsecond, fired) }, false},
		{func() (timer.Handle, error) {
			h, err := s.Start(time.Minute, fired)
			require.True(t, h.MoveWithin(300*time.Microsecond, 0))
			return h, err
		}, true},
		{func() (timer.Handle, error) {
			h, err := s.StartWithin(time.Minute, 0, fired)
			require.True(t, h.Move(300*time.Microsecond))
			return h, err
		}, false},
	} {
		begin = clk.Now()
		_, err := c.start()
		require.NoError(t, err)
		advanceTo(clk, begin.Add(1100*time.Millisecond))
		require.Zero(t, s.Len())
		require.Equal(t, c.exact, at == 300*time.Microsecond, "%v", at)
		require.LessOrEqual(t, at, time.Second+300*time.Microsecond)
	}
	require.False(t, timer.Handle{}.MoveWithin(0, 0))
}

// Each tick of a ticker may be late, but the ticker keeps its phase.
func TestSlack_OfATicker(t *testing.T) {
	s, clk := virtual(t, timer.WithSlack(0.5, 0, time.Second))
	tick := s.NewTicker(10 * time.Millisecond)
	begin := clk.Now()
	for n := time.Duration(1); n <= 100; n++ {
		advanceTo(clk, begin.Add(n*10*time.Millisecond+5*time.Millisecond))
		select {
		case at := <-tick.C:
			require.GreaterOrEqual(t, at.Sub(begin), n*10*time.Millisecond)
		default:
			t.Fatalf("tick %d did not come", n)
		}
	}
	tick.Stop()
}

// Deadline, and the other methods that return a deadline, leave out the slack.
func TestSlack_LeavesDeadlinesAlone(t *testing.T) {
	s, clk := virtual(t, timer.WithSlack(1, time.Hour, time.Hour))
	deadline := clk.Now().Add(90*time.Minute + 12345)
	start(t, s, deadline.Sub(clk.Now()), func() {})
	for p := range leftover(s) {
		require.True(t, deadline.Equal(p.Deadline))
	}
}

func TestWithSlack_RefusesBadArguments(t *testing.T) {
	nan := 0.0
	nan /= nan
	for _, o := range []func() timer.Option{
		func() timer.Option { return timer.WithSlack(-0.1, 0, 1) },
		func() timer.Option { return timer.WithSlack(1.1, 0, 1) },
		func() timer.Option { return timer.WithSlack(nan, 0, 1) },
		func() timer.Option { return timer.WithSlack(0, -1, 1) },
		func() timer.Option { return timer.WithSlack(0, 2, 1) },
	} {
		require.Panics(t, func() { timer.New(o()) })
	}
	timer.New(timer.WithSlack(0, 0, 0)).Close() // none
}

// The poller does not wake up to move timers down a level before one is due.
func TestPoller_NoWakeupForAMove(t *testing.T) {
	s, clk := virtual(t)
	rng := rand.New(rand.NewPCG(3, 4))
	const n = 200
	for range n {
		start(t, s, 1+time.Duration(rng.Int64N(int64(time.Hour))), func() {})
	}
	clk.Advance(time.Hour + time.Second)
	st := s.Stats()
	require.EqualValues(t, n, st.Fired)
	require.LessOrEqual(t, st.Wakeups, uint64(n))
	require.Zero(t, st.EmptyWakeups)
	require.LessOrEqual(t, st.Lateness.Max(), timer.DefaultTick)
}

// The alarm is set for the only timer of a bucket whose slot has begun. Timers that are
// due before it are started, and fire in time.
func TestPoller_ATimerBeforeTheFirstOfABucketWhoseSlotHasBegun(t *testing.T) {
	slot := 256 * 256 * timer.DefaultTick // of the third level
	s, clk := virtual(t)
	begin := clk.Now()
	fired := map[string]time.Duration{}
	fire := func(name string) func() { return func() { fired[name] = clk.Now().Sub(begin) } }
	late := 2*slot + 5*time.Second
	start(t, s, late, fire("late"))
	clk.Advance(2*slot + 100*time.Millisecond)
	require.Zero(t, s.Stats().Wakeups)
	start(t, s, time.Second, fire("soon"))
	start(t, s, time.Millisecond, fire("at once"))
	clk.Advance(10 * time.Second)
	require.Equal(t, map[string]time.Duration{
		"at once": 2*slot + 101*time.Millisecond,
		"soon":    2*slot + 1100*time.Millisecond,
		"late":    late,
	}, fired)
	require.EqualValues(t, 3, s.Stats().Wakeups)
}
