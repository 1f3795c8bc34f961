package timer

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"
)

// stressed is a timer of a stress test. The test checks in the end what has happened to
// it.
type stressed struct {
	due  time.Time // the callback must not run before
	runs atomic.Int32
	// stopped counts the Stops that reported true.
	stopped atomic.Int32
	early   atomic.Bool
}

func (x *stressed) run() {
	if time.Now().Before(x.due) {
		x.early.Store(true)
	}
	x.runs.Inc()
}

// StressLong reports whether the stress tests should run for minutes.
func StressLong() bool { return os.Getenv("TICKLESS_STRESS") == "long" }

// stressFor returns the length of a stress test: short, or long if StressLong.
func stressFor(short, long time.Duration) time.Duration {
	if StressLong() {
		return long
	}
	return short
}

// Goroutines start, stop and reset timers until the Scheduler is closed. No timer is
// early, lost, run twice, or run after a Stop that reported true.
func TestStress_StartStopResetClose(t *testing.T) {
	rounds := 0
	for end := time.Now().Add(stressFor(time.Second, 30*time.Second)); time.Now().Before(end); rounds++ {
		stressRound(t, rounds)
	}
	t.Logf("%d rounds", rounds)
}

func stressRound(t *testing.T, round int) {
	s := New(WithTick(time.Duration(1+round%3*499)*time.Microsecond), WithWheelSize(4<<(round%4)))
	var wg sync.WaitGroup
	all := make([][]*stressed, 4)
	stop := make(chan struct{})
	for g := range all {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(round), uint64(g)))
			type pending struct {
				*stressed
				h Handle
			}
			var mine []pending
			for {
				select {
				case <-stop:
					return
				default:
				}
				switch rng.IntN(4) {
				case 0, 1:
					d := time.Duration(rng.IntN(3_000_000) - 1000)
					x := &stressed{due: time.Now().Add(d)}
					h, err := s.Start(d, x.run)
					if err == nil {
						mine = append(mine, pending{x, h})
						all[g] = append(all[g], x)
					}
				case 2:
					if len(mine) > 0 {
						i := rng.IntN(len(mine))
						if mine[i].h.Stop() {
							mine[i].stopped.Inc()
						}
						mine[i] = mine[len(mine)-1]
						mine = mine[:len(mine)-1]
					}
				case 3:
					if len(mine) > 0 {
						// Move only to a later time. With an earlier deadline, the
						// callback might run before due is updated, and would seem early.
						x := mine[rng.IntN(len(mine))]
						x.h.Move(time.Until(x.due) + time.Duration(rng.IntN(1_000_000)))
					}
				}
				if len(mine) > 2000 {
					mine = mine[1000:]
				}
			}
		})
	}
	time.Sleep(time.Duration(20+round%7*10) * time.Millisecond)
	// Close while others start and stop timers and timers fire.
	handedBack := len(closeAll(s))
	time.Sleep(time.Millisecond)
	close(stop)
	wg.Wait()
	require.NoError(t, s.Shutdown(context.Background()))
	handedBack += len(closeAll(s))

	var started, runs, stopped int
	for _, xs := range all {
		for _, x := range xs {
			started++
			r, st := int(x.runs.Load()), int(x.stopped.Load())
			runs += r
			stopped += st
			require.LessOrEqual(t, r+st, 1, "ran %d times, stopped %d times", r, st)
			require.False(t, x.early.Load(), "early")
		}
	}
	st := s.Stats()
	require.EqualValues(t, started, st.Started)
	require.EqualValues(t, runs, st.Fired)
	require.EqualValues(t, stopped, st.Stopped)
	require.EqualValues(t, handedBack, st.HandedBack)
	require.Equal(t, started, runs+stopped+handedBack, "lost")
	require.Zero(t, st.Refused)
}
