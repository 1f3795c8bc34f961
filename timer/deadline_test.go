package timer_test

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

	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// pipeDeadline is net.Pipe's, which Deadline is to behave as.
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

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Set and Done in any order, beside net.Pipe's: the channels that both have handed
// out are closed at the same moments. With the Scheduler open, and closed in
// the middle.
func TestDeadline_AsNetPipe(t *testing.T) {
	for name, opts := range map[string][]timer.Option{
		"room": nil, "closed": nil, "coarse": {timer.WithTick(time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			rng := newRand(t)
			for range 30 {
				synctest.Test(t, func(t *testing.T) { comparePipe(t, name, rng, opts) })
			}
		})
	}
}

func comparePipe(t *testing.T, name string, rng *rand.Rand, opts []timer.Option) {
	s := timer.New(opts...)
	defer s.Close()
	var d timer.Deadline
	d.Init(s)
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
		if name == "closed" && step == 100 {
			s.Close()
		}
		synctest.Wait()
		require.Equal(t, isClosed(p.wait()), d.Err() != nil, "step %d", step)
		for i := range ours {
			require.Equal(t, isClosed(theirs[i]), isClosed(ours[i]), "step %d: channel %d", step, i)
		}
		require.LessOrEqual(t, s.Len(), 1)
	}
}

func TestDeadline_CostsNothingWhileNobodyWaits(t *testing.T) {
	s := timer.New()
	defer s.Close()
	var d timer.Deadline
	d.Init(s)
	now := time.Now()
	require.Zero(t, testing.AllocsPerRun(100, func() { d.Set(now.Add(time.Hour)) }))
	require.Zero(t, s.Len())
	done := d.Done()
	require.Equal(t, 1, s.Len())
	require.Zero(t, testing.AllocsPerRun(100, func() {
		d.Set(now.Add(2 * time.Hour))
		d.Done()
	}))
	require.Equal(t, done, d.Done())
	require.Equal(t, 1, s.Len())
	require.NoError(t, d.Err())
	d.Set(now.Add(-1))
	requireClosed(t, done)
	require.ErrorIs(t, d.Err(), os.ErrDeadlineExceeded)
	var timeout net.Error
	require.True(t, errors.As(d.Err(), &timeout) && timeout.Timeout())
}

func TestDeadline_WithoutInit(t *testing.T) {
	var d timer.Deadline
	require.Panics(t, func() { d.Set(time.Now()) })
	require.Panics(t, func() { d.Done() })
	require.Panics(t, func() { d.Err() })
}

// Under the race detector: who waits is woken once the deadline that was set last
// has passed, whoever sets and asks meanwhile.
func TestDeadline_Stress(t *testing.T) {
	s := timer.New(timer.WithTick(time.Microsecond))
	defer s.Close()
	for range 50 {
		var d timer.Deadline
		d.Init(s)
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

// However it is set, waited for and set again around the Close of its Scheduler: who
// waits is told when the last deadline has passed, and not before.
func TestDeadline_EverySequenceAroundClose(t *testing.T) {
	ops := []string{"1s", "3s", "none", "done", "close", "advance"}
	length := 6
	if testing.Short() {
		length = 5
	}
	for n := range pow(len(ops), length) {
		clk := timertest.NewClock(epoch)
		s := timer.New(timer.WithClock(clk))
		var d timer.Deadline
		d.Init(s)
		var due time.Time
		var done <-chan struct{}
		var said []string
		over := func() bool { return !due.IsZero() && !clk.Now().Before(due) }
		for k, rest := 0, n; k < length; k, rest = k+1, rest/len(ops) {
			op := ops[rest%len(ops)]
			said = append(said, op)
			set := func(in time.Duration) {
				if over() {
					done = nil // the next is another channel
				}
				due = time.Time{}
				if in > 0 {
					due = clk.Now().Add(in)
				}
				d.Set(due)
			}
			switch op {
			case "1s":
				set(time.Second)
			case "3s":
				set(3 * time.Second)
			case "none":
				set(0)
			case "done":
				done = d.Done()
			case "close":
				s.Close()
			case "advance":
				clk.Advance(2 * time.Second)
			}
			if done == nil {
				continue
			}
			if closed := isClosed(done); closed != over() {
				t.Fatalf("%v: closed %v, over %v", said, closed, over())
			}
		}
		s.Close()
	}
}

func pow(n, k int) int {
	p := 1
	for range k {
		p *= n
	}
	return p
}

// A reader whose channel was closed may find that there is no deadline any more: Done and
// Err tell of different moments.
func TestDeadline_ErrIsOfTheDeadlineThatIsSetNow(t *testing.T) {
	s := timer.New()
	defer s.Close()
	var d timer.Deadline
	d.Init(s)
	done := d.Done()
	d.Set(time.Unix(1, 0))
	<-done
	require.ErrorIs(t, d.Err(), os.ErrDeadlineExceeded)
	d.Set(time.Time{})
	<-done
	require.NoError(t, d.Err())
}
