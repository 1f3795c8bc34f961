package idle_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/timertest"
)

// modelled is a watched thing with the state that the test expects.
type modelled struct {
	*idle.Entry[int]
	last, latest time.Time // the last activity, and the latest time for an eviction
	timeout      time.Duration
	ended        bool
}

// The test watches, touches and stops things, and changes timeouts, at random moments.
// Each eviction must be in time and report the last activity.
func TestMonitor_Model(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		tick := []time.Duration{1, time.Millisecond, idle.DefaultTick, time.Second}[rng.IntN(4)]
		slack := []float64{0, idle.DefaultSlack, 0.3, 1}[rng.IntN(4)]
		clk := timertest.NewClock(epoch)
		var things []*modelled
		m := idle.New(func(i int, since time.Time) {
			x := things[i]
			require.False(t, x.ended, "seed %d", seed)
			require.Equal(t, x.last, since, "seed %d", seed)
			require.GreaterOrEqual(t, clk.Now().Sub(since), x.timeout, "seed %d: early", seed)
			require.False(t, clk.Now().After(x.latest), "seed %d: late", seed)
			x.ended = true
		}, idle.WithClock(clk), idle.WithTick(tick), idle.WithSlackShare(slack))
		changed := func(x *modelled) {
			x.latest = x.last.Add(x.timeout + time.Duration(slack*float64(x.timeout)) + tick)
			if now := clk.Now().Add(tick); x.latest.Before(now) {
				x.latest = now
			}
		}
		random := func() time.Duration { return 1 + time.Duration(rng.Int64N(2<<rng.IntN(40))) }
		for range 60 {
			action := rng.IntN(8)
			if action < 2 || len(things) == 0 {
				x := &modelled{last: clk.Now(), timeout: random()}
				var err error
				x.Entry, err = m.Watch(len(things), x.timeout)
				require.NoError(t, err)
				things = append(things, x)
				changed(x)
				continue
			}
			x := things[rng.IntN(len(things))]
			watched := !x.ended
			switch action {
			case 2:
				require.Equal(t, watched, x.Stop(), "seed %d", seed)
				x.ended = true
			case 3, 4:
				if require.Equal(t, watched, x.Touch(), "seed %d", seed); watched {
					x.last = clk.Now()
					changed(x)
				}
			case 5:
				timeout := random()
				if require.Equal(t, watched, x.SetTimeout(timeout), "seed %d", seed); watched {
					x.timeout = timeout
					changed(x)
				}
			default:
				clk.Advance(random())
			}
			watching := 0
			for _, x := range things {
				if !x.ended {
					watching++
					require.False(t, clk.Now().After(x.latest), "seed %d: overdue", seed)
				}
			}
			require.Equal(t, watching, m.Len(), "seed %d", seed)
		}
		for _, i := range leftover(m) {
			require.False(t, things[i].ended, "seed %d", seed)
			things[i].ended = true
		}
		for _, x := range things {
			require.True(t, x.ended, "seed %d: lost", seed)
		}
	}
}
