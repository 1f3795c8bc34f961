package timer

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"
)

// entryGoroutines is the number of goroutines that stop and reset the same Timers.
const entryGoroutines = 4

// Goroutines stop and reset a few Timers around their deadlines, until the Scheduler is
// closed. Each start ends in one run, one Stop that reports true, or one Leftover.
func TestStress_TimersThatAreReset(t *testing.T) {
	rounds := 0
	var total Stats
	const least = 8 // enough for some Timers to be handed back, even on a slow machine
	for end := time.Now().Add(stressFor(time.Second, 30*time.Second)); rounds < least || time.Now().Before(end); rounds++ {
		st := entryRound(t, uint64(rounds))
		total.Fired += st.Fired
		total.Stopped += st.Stopped
		total.HandedBack += st.HandedBack
		total.Cascaded += st.Cascaded
	}
	t.Logf("%d rounds: %d fired, %d stopped, %d handed back, %d moved", rounds, total.Fired, total.Stopped, total.HandedBack, total.Cascaded)
	require.NotZero(t, total.Fired)
	require.NotZero(t, total.Stopped)
	require.NotZero(t, total.HandedBack)
}

func entryRound(t *testing.T, round uint64) Stats {
	s := New(WithShards(1), WithTick(time.Microsecond<<(round%8)))
	timers := make([]*Timer, 1+round%160)
	var runs, stops, starts atomic.Int64
	for i := range timers {
		timers[i] = s.AfterFunc(time.Hour, func() { runs.Inc() })
	}
	starts.Add(int64(len(timers)))
	var handedBack int
	var wg sync.WaitGroup
	closing := make(chan struct{})
	for g := range entryGoroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(round, uint64(g)))
			for n := 0; ; n++ {
				select {
				case <-closing:
					if n > 3000 {
						return
					}
				default:
				}
				x := timers[rng.IntN(len(timers))]
				switch {
				case rng.IntN(2) == 0:
					if x.Stop() {
						stops.Inc()
					}
				default:
					if !x.Reset(time.Duration(rng.IntN(300)) * time.Microsecond) {
						starts.Inc()
					}
				}
				if g == 0 && n == 2000 && round%2 == 0 {
					handedBack = len(closeAll(s)) // while the others are running
				}
				if g == 0 && n == 2000 {
					close(closing)
				}
			}
		})
	}
	wg.Wait()
	for _, x := range timers {
		if x.Stop() {
			stops.Inc()
		}
	}
	if round%2 == 1 {
		require.Zero(t, s.Len())
		require.Zero(t, s.shards.firstShard.wheel.Len())
	}
	require.NoError(t, s.Shutdown(context.Background()))
	handedBack += len(closeAll(s))
	st := s.Stats()
	// Timers that are started after Close fall back, and Stats does not count whether
	// they have run or were stopped.
	require.Eventually(t, func() bool {
		return starts.Load() == runs.Load()+stops.Load()+int64(handedBack)
	}, time.Minute, time.Millisecond, "%+v", st)
	require.LessOrEqual(t, uint64(runs.Load()+stops.Load()), st.Fired+st.Stopped+st.FellBack)
	require.EqualValues(t, handedBack, st.HandedBack)
	require.Zero(t, st.Pending)
	require.Zero(t, s.shards.firstShard.numTimerEntries)
	return st
}

// Goroutines stop and reset Timers around their deadlines, and receive from their
// channels. Each start ends in one received value, or in one Stop that reports true.
func TestStress_TimersWithChannelsThatAreReset(t *testing.T) {
	rounds := 0
	for end := time.Now().Add(stressFor(time.Second, 30*time.Second)); time.Now().Before(end); rounds++ {
		s := New(WithShards(1), WithTick(time.Microsecond<<(rounds%8)))
		timers := make([]*Timer, 1+rounds%40)
		for i := range timers {
			timers[i] = s.NewTimer(time.Hour)
		}
		var received, stops, starts atomic.Int64
		starts.Add(int64(len(timers)))
		var wg sync.WaitGroup
		for g := range entryGoroutines {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(rounds), uint64(g)))
				for range 2000 {
					x := timers[rng.IntN(len(timers))]
					switch rng.IntN(4) {
					case 0:
						select {
						case <-x.C:
							received.Inc()
						default:
						}
					case 1:
						if x.Stop() {
							stops.Inc()
						}
					default:
						if !x.Reset(time.Duration(rng.IntN(100)) * time.Microsecond) {
							starts.Inc()
						}
					}
				}
			})
		}
		wg.Wait()
		for _, x := range timers {
			if x.Stop() {
				stops.Inc()
			}
			require.Empty(t, x.C)
		}
		require.Equal(t, starts.Load(), received.Load()+stops.Load())
		require.Zero(t, s.Len())
		require.NoError(t, s.Shutdown(context.Background()))
	}
	t.Logf("%d rounds", rounds)
}
