package deadline_test

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/deadline"
	"github.com/tickless/tickless/timer"
)

// pipeDeadline is net.Pipe's deadline, which Deadline must match.
type pipeDeadline struct {
	mu     sync.Mutex
	timer  *time.Timer
	cancel chan struct{}
}

func (d *pipeDeadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.cancel
	}
	d.timer = nil
	closed := isClosed(d.cancel)
	if t.IsZero() {
		if closed {
			d.cancel = make(chan struct{})
		}
		return
	}
	if dur := time.Until(t); dur > 0 {
		if closed {
			d.cancel = make(chan struct{})
		}
		d.timer = time.AfterFunc(dur, func() { close(d.cancel) })
		return
	}
	if !closed {
		close(d.cancel)
	}
}

func (d *pipeDeadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cancel
}

// The same random calls on a Deadline and on net.Pipe's deadline must close their
// channels at the same moments.
func TestDeadline_AsNetPipe(t *testing.T) {
	rng := newRand(t)
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			var d deadline.Deadline
			p := pipeDeadline{cancel: make(chan struct{})}
			var ours, theirs []<-chan struct{}
			for step := range 200 {
				switch op := rng.IntN(10); {
				case op < 4:
					at := time.Now().Add(time.Duration(rng.IntN(60)-10) * time.Millisecond)
					if rng.IntN(6) == 0 {
						at = time.Time{}
					}
					d.Set(at)
					p.set(at)
				case op < 6:
					ours, theirs = append(ours, d.Done()), append(theirs, p.wait())
				default:
					time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
				}
				synctest.Wait()
				require.Equal(t, isClosed(p.wait()), d.Err() != nil, "step %d", step)
				for i := range ours {
					require.Equal(t, isClosed(theirs[i]), isClosed(ours[i]), "step %d: channel %d", step, i)
				}
			}
		})
	}
}

func TestDeadline_CostsNothingWhileNobodyWaits(t *testing.T) {
	pending := timer.Default().Len()
	var d deadline.Deadline
	now := time.Now()
	require.Zero(t, testing.AllocsPerRun(100, func() { d.Set(now.Add(time.Hour)) }))
	require.Equal(t, pending, timer.Default().Len())
	done := d.Done()
	require.Equal(t, pending+1, timer.Default().Len())
	require.Zero(t, testing.AllocsPerRun(100, func() {
		d.Set(now.Add(2 * time.Hour))
		d.Done()
	}))
	require.Equal(t, done, d.Done())
	require.Equal(t, pending+1, timer.Default().Len())
	require.NoError(t, d.Err())
	d.Set(now.Add(-1))
	requireClosed(t, done)
	require.ErrorIs(t, d.Err(), os.ErrDeadlineExceeded)
	var timeout net.Error
	require.True(t, errors.As(d.Err(), &timeout) && timeout.Timeout())
}

// For the race detector: several goroutines call Set, Done and Err at once. Afterwards
// the channel is closed when the last deadline has passed.
func TestDeadline_Stress(t *testing.T) {
	for range 50 {
		var d deadline.Deadline
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(g), 7))
				for range 200 {
					switch rng.IntN(4) {
					case 0:
						d.Set(time.Time{})
					case 1:
						d.Done()
						d.Err()
					default:
						d.Set(time.Now().Add(time.Duration(rng.IntN(50_000))))
					}
				}
			})
		}
		wg.Wait()
		d.Set(time.Now().Add(time.Millisecond))
		<-d.Done()
		require.Error(t, d.Err())
		d.Set(time.Now().Add(time.Hour))
		require.NoError(t, d.Err())
		require.False(t, isClosed(d.Done()))
		d.Set(time.Time{})
	}
}

// A reader receives from Done, and then the deadline is cleared. The channel stays
// closed, but Err returns nil.
func TestDeadline_ErrIsOfTheDeadlineThatIsSetNow(t *testing.T) {
	var d deadline.Deadline
	done := d.Done()
	d.Set(time.Unix(1, 0))
	<-done
	require.ErrorIs(t, d.Err(), os.ErrDeadlineExceeded)
	d.Set(time.Time{})
	<-done
	require.NoError(t, d.Err())
}
