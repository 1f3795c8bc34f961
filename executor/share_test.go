package executor_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/internal/share"
)

// shared calls Share. The caller must run the callbacks.
func shared(t *testing.T, p *executor.Pool, fs ...func()) share.Work {
	t.Helper()
	w, err := share.PoolOf(p).Share(fs, time.Hour)
	require.NoError(t, err)
	return w
}

// Shared short callbacks run on the calling goroutine, in order. They wake no worker.
func TestShare_RunsWhereItWasFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in a bubble the watchdog does not interfere
		p := executor.NewPool(executor.WithWorkers(2))
		var order []int
		fs := make([]func(), 1000)
		for i := range fs {
			fs[i] = func() { order = append(order, i) }
		}
		s := shared(t, p, fs...)
		clear(fs) // the caller may reuse the slice
		st := p.Stats()
		conserve(t, st, 1000)
		require.Equal(t, 1, st.Running, "the first callback counts as running when Share returns")
		require.Equal(t, 999, st.Queued)
		s.Run()
		require.True(t, slices.IsSorted(order))
		require.Len(t, order, 1000)
		st = p.Stats()
		require.Equal(t, uint64(1000), st.Run)
		require.Equal(t, 1, st.PeakWorkers)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// A callback that blocks delays the callbacks behind it by one or two checks of the
// watchdog.
func TestShare_OneThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(2))
		release := make(chan struct{})
		began := time.Now()
		var ran atomic.Int32
		fs := []func(){func() { ran.Inc() }, func() { <-release }}
		fs = append(fs, slices.Repeat([]func(){func() { ran.Inc() }}, 500)...)
		s := shared(t, p, fs...)
		go s.Run()
		synctest.Wait()
		require.EqualValues(t, 1, ran.Load())
		conserve(t, p.Stats(), 502)
		for ran.Load() < 501 {
			time.Sleep(100 * time.Microsecond)
			synctest.Wait()
		}
		require.LessOrEqual(t, time.Since(began), 2*time.Millisecond)
		require.Equal(t, 1, p.Stats().Running)
		close(release)
		synctest.Wait()
		require.Zero(t, p.Stats().Workers)
		conserve(t, p.Stats(), 502)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// If the next call of Share comes soon, it notices a slow callback. Otherwise the watchdog
// does.
func TestShare_NoticesASlowCallback(t *testing.T) {
	const soon = time.Millisecond
	for name, c := range map[string]struct {
		nextCall, waits time.Duration
	}{
		"next call soon": {soon, time.Minute}, // not before the next call
		"next call late": {time.Hour, soon},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := executor.NewPool(executor.WithWorkers(2))
				share := share.PoolOf(p).Share
				began, release := time.Now(), make(chan struct{})
				var waited time.Duration
				w, err := share([]func(){func() { <-release }, func() { waited = time.Since(began) }}, c.nextCall)
				require.NoError(t, err)
				go w.Run()
				time.Sleep(time.Minute)
				_, err = share(nil, time.Hour)
				require.NoError(t, err)
				synctest.Wait()
				require.Equal(t, c.waits, waited)
				close(release)
				require.NoError(t, p.Shutdown(t.Context()))
			})
		})
	}
}

// A slow callback is noticed although calls of Share come in quick succession, or come to
// an end.
func TestShare_NoticesASlowCallbackBetweenManyCalls(t *testing.T) {
	for _, gap := range []time.Duration{100 * time.Microsecond, time.Millisecond, 1500 * time.Microsecond} {
		synctest.Test(t, func(t *testing.T) {
			p := executor.NewPool(executor.WithWorkers(2))
			began, release := time.Now(), make(chan struct{})
			var waited time.Duration
			share := share.PoolOf(p).Share
			w, err := share([]func(){func() { <-release }, func() { waited = time.Since(began) }}, gap)
			require.NoError(t, err)
			go w.Run()
			for range 10 {
				time.Sleep(gap)
				w, err := share([]func(){func() {}}, gap)
				require.NoError(t, err)
				go w.Run()
			}
			time.Sleep(time.Second)
			require.NotZero(t, waited)
			require.LessOrEqual(t, waited, 2*time.Millisecond)
			close(release)
			require.NoError(t, p.Shutdown(t.Context()))
		})
	}
}

// Shared callbacks do not wait behind the pool's queue, however long the queue is.
func TestShare_AheadOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(1))
		release := blockers(t, p, 100)
		synctest.Wait()
		ran := false
		go shared(t, p, func() { ran = true }).Run()
		synctest.Wait()
		require.True(t, ran)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// A worker was started for a callback, but has not begun to run. The goroutine that calls
// Run runs that callback too.
func TestShare_HelpsAWorkerThatHasNotBegun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := executor.NewPool(executor.WithWorkers(1))
	var order []int
	note := func(i int) func() { return func() { order = append(order, i) } }
	require.NoError(t, p.Submit(note(1))) // the new worker waits for this proc
	require.NoError(t, p.Submit(note(2)))
	shared(t, p, note(0)).Run()
	require.Equal(t, []int{0, 1, 2}, order)
	require.NoError(t, p.Shutdown(t.Context()))
	require.EqualValues(t, 3, p.Stats().Run)
}

// PeakWorkers counts all goroutines that run callbacks.
func TestShare_CountsForThePeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(1))
		release := make(chan struct{})
		wait := func() { <-release }
		go shared(t, p, wait).Run()
		require.NoError(t, p.Submit(wait))
		synctest.Wait()
		require.Equal(t, 2, p.Stats().Workers)
		require.Equal(t, 2, p.Stats().PeakWorkers)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestShare_PanicsAndGoexit(t *testing.T) {
	var panics []any
	var mu sync.Mutex
	p := executor.NewPool(executor.WithPanicHandler(func(v any, _ []byte) {
		mu.Lock()
		defer mu.Unlock()
		panics = append(panics, v)
	}))
	var ran atomic.Int32
	fs := []func(){}
	for i := range 30 {
		switch i % 3 {
		case 0:
			fs = append(fs, func() { ran.Inc(); panic(i) })
		case 1:
			fs = append(fs, func() { ran.Inc(); runtime.Goexit() })
		default:
			fs = append(fs, func() { ran.Inc() })
		}
	}
	fs = append(fs, nil)
	s := shared(t, p, fs...)
	s.Run() // returns after the first callback panics; another goroutine runs the others
	single := make(chan struct{})
	go func() {
		defer close(single)
		shared(t, p, func() { runtime.Goexit() }).Run()
	}()
	<-single
	require.NoError(t, p.Shutdown(t.Context()))
	require.EqualValues(t, 30, ran.Load())
	require.Len(t, panics, 11)
	st := p.Stats()
	require.Equal(t, uint64(32), st.Run)
	require.Equal(t, uint64(11), st.Panicked)
	require.Zero(t, st.Workers)
}

func TestShare_OfNothingAndAfterShutdown(t *testing.T) {
	p := executor.NewPool()
	shared(t, p).Run()
	share.Work{}.Run()
	s := shared(t, p, func() {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Shutdown(ctx), context.Canceled, "shared callbacks have not run yet")
	_, err := share.PoolOf(p).Share([]func(){func() {}, func() {}}, 0)
	require.ErrorIs(t, err, executor.ErrClosed)
	require.EqualValues(t, 2, p.Stats().Rejected)
	s.Run()
	require.NoError(t, p.Shutdown(t.Context()))
}

// On a pool with WithMaxWorkers, Share does not exceed the maximum.
func TestShare_OnABoundedPool(t *testing.T) {
	p := executor.NewPool(executor.WithMaxWorkers(1))
	release := make(chan struct{})
	require.NoError(t, p.Submit(func() { <-release }))
	var ran atomic.Int32
	w := shared(t, p, slices.Repeat([]func(){func() { ran.Inc() }}, 5)...)
	w.Run()
	require.Zero(t, ran.Load())
	close(release)
	require.NoError(t, p.Shutdown(t.Context()))
	require.EqualValues(t, 5, ran.Load())
	require.Equal(t, 1, p.Stats().PeakWorkers)
}

// Share, Submit and the watchdog run at the same time. Each callback runs once.
func TestStress_Shares(t *testing.T) {
	const goroutines, rounds, size = 4, 300, 20
	p := executor.NewPool(executor.WithWorkers(2))
	var ran atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range rounds {
				fs := make([]func(), 1+(g+i)%size)
				for k := range fs {
					fs[k] = func() {
						if (i+k)%50 == 0 {
							time.Sleep(2 * time.Millisecond)
						}
						ran.Inc()
					}
				}
				if i%3 == 0 {
					_, err := p.SubmitBatch(fs)
					require.NoError(t, err)
					continue
				}
				shared(t, p, fs...).Run()
			}
		})
	}
	wg.Wait()
	require.NoError(t, p.Shutdown(t.Context()))
	st := p.Stats()
	require.EqualValues(t, st.Submitted, ran.Load())
	require.Equal(t, st.Submitted, st.Run)
	require.Zero(t, st.Queued+st.Running+st.Workers)
}
