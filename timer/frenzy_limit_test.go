package timer_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

// fickle is an executor that refuses one callback in five, and lets the others wait
// for whoever runs them.
type fickle struct {
	mu      sync.Mutex
	waiting []func()
	seen    int
	peak    int
}

func (e *fickle) Submit(f func()) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen++; e.seen%5 == 0 {
		return executor.ErrOverloaded
	}
	e.waiting = append(e.waiting, f)
	e.peak = max(e.peak, len(e.waiting))
	return nil
}

func (e *fickle) SubmitBatch(fs []func()) (n int, err error) {
	for _, f := range fs {
		if err = e.Submit(f); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (e *fickle) Shutdown(context.Context) error { return nil }

func (e *fickle) runAll() {
	e.mu.Lock()
	fs := e.waiting
	e.waiting = nil
	e.mu.Unlock()
	for _, f := range fs {
		f()
	}
}

// Everything at once on a Scheduler that is full most of the time: nothing is lost
// or doubled, whether it was pending or had fallen back.
func TestFrenzy_AtTheLimit(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	for range rounds {
		const limit, workers, each = 64, 4, 400
		s := timer.New(timer.WithMaxPending(limit), timer.WithShards(8))
		var wg sync.WaitGroup
		// Of AfterFunc: starts that were accepted, and what became of them.
		begun, ran, stopped := atomic.NewInt64(0), atomic.NewInt64(0), atomic.NewInt64(0)
		f := func() { ran.Inc() }
		keyed := timer.NewKeyed(s, func(int, int) {})
		for range workers {
			wg.Go(func() {
				d := func() time.Duration { return time.Duration(rand.IntN(3000)-100) * time.Microsecond }
				var ts []*timer.Timer
				var ks []*timer.Ticker
				var js []*timer.Job
				for range each {
					switch rand.IntN(12) {
					case 0, 1:
						begun.Inc()
						ts = append(ts, s.AfterFunc(d(), f))
					case 2:
						s.Start(d(), func() {})
					case 3:
						s.After(d())
					case 4:
						ks = append(ks, s.NewTicker(max(1, d())))
					case 5:
						if j, err := s.Every(100*time.Microsecond, func() {}); err == nil {
							js = append(js, j)
						}
					case 6:
						keyed.Set(rand.IntN(20), 1, d())
					case 7:
						keyed.Remove(rand.IntN(20))
					case 8:
						if len(ts) > 0 && ts[rand.IntN(len(ts))].Stop() {
							stopped.Inc()
						}
					case 9:
						if len(ts) > 0 && !ts[rand.IntN(len(ts))].Reset(d()) {
							begun.Inc() // it was over, and runs again
						}
					case 10:
						if len(ks) > 0 {
							k := ks[rand.IntN(len(ks))]
							k.Reset(max(1, d()))
							k.Stop()
						}
					case 11:
						if len(js) > 0 {
							js[rand.IntN(len(js))].Stop()
						}
					}
				}
			})
		}
		wg.Wait()
		// What is handed back is run by hand, so that ran counts it too.
		for p := range leftover(s) {
			if p.Func != nil {
				p.Func()
			}
		}
		require.NoError(t, s.Shutdown(t.Context()))
		st := s.Stats()
		require.NotZero(t, st.FellBack)
		require.NotZero(t, st.Rejected)
		require.Zero(t, st.Pending)
		balanced(t, st)
		require.Equal(t, begun.Load(), ran.Load()+stopped.Load())
	}
}

// Jobs that fill a Scheduler, and an executor that refuses one callback in
// five: none ever has two callbacks there.
func TestFrenzy_JobsOnAnExecutorThatRefuses(t *testing.T) {
	const jobs = 60
	e := new(fickle)
	s := timer.New(timer.WithExecutor(e), timer.WithMaxPending(jobs))
	var js []*timer.Job
	runs := make([]atomic.Int64, jobs)
	for i := range jobs {
		js = append(js, must(s.Every(time.Millisecond, func() { runs[i].Inc() }, timer.OnOverrun(timer.Overrun(i%3)))))
	}
	done := func() bool {
		for i := range runs {
			if runs[i].Load() < 20 {
				return false
			}
		}
		return true
	}
	for !done() {
		time.Sleep(10 * time.Millisecond)
		e.runAll()
	}
	for _, j := range js {
		require.True(t, j.Stop())
	}
	var wg sync.WaitGroup
	over := atomic.NewBool(false)
	wg.Go(func() {
		for !over.Load() { // what was on its way comes now
			e.runAll()
			time.Sleep(time.Millisecond)
		}
	})
	require.NoError(t, s.Shutdown(t.Context()))
	over.Store(true)
	wg.Wait()
	require.LessOrEqual(t, e.peak, jobs)
	st := s.Stats()
	require.NotZero(t, st.Dropped)
	balanced(t, st)
}
