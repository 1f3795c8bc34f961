package executor_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
)

func TestPool_OneWorkerKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithMaxWorkers(1))
		var got []int
		const n = 2000
		for i := 0; i < n; {
			var fs []func()
			for range 1 + i%600 {
				v := i
				fs = append(fs, func() { got = append(got, v) })
				i++
			}
			if len(fs) == 1 {
				require.NoError(t, p.Submit(fs[0]))
			} else {
				_, err := p.SubmitBatch(fs)
				require.NoError(t, err)
			}
		}
		require.NoError(t, p.Shutdown(t.Context()))
		require.GreaterOrEqual(t, len(got), n)
		require.True(t, slices.IsSorted(got))
	})
}

// A callback that blocks does not delay other callbacks of its batch.
func TestPool_BlockedCallbackInTheMiddleOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(2), executor.WithMaxWorkers(2))
		release := make(chan struct{})
		var ran atomic.Int32
		fs := slices.Repeat([]func(){func() { ran.Inc() }}, 1000)
		fs[3] = func() { <-release }
		_, err := p.SubmitBatch(fs)
		require.NoError(t, err)
		synctest.Wait()
		require.EqualValues(t, 999, ran.Load())
		s := p.Stats()
		conserve(t, s, 1000)
		require.Equal(t, 1, s.Running)
		require.Equal(t, 1, s.Workers)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// An idle Pool has no goroutine: otherwise its bubble could not end. (In ants, goroutines
// were left after the pool's release: issue 212.)
func TestPool_NoGoroutineLeft(t *testing.T) {
	for _, opts := range [][]executor.PoolOption{
		nil,
		{executor.WithWorkers(64), executor.WithMaxWorkers(64)},
		{executor.WithMaxWorkers(8)},
	} {
		for _, shutdown := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				p := executor.NewPool(opts...)
				for range 500 {
					require.NoError(t, p.Submit(func() { time.Sleep(time.Millisecond) }))
				}
				require.NoError(t, p.Submit(exit))
				require.Positive(t, p.Stats().Workers)
				if shutdown {
					require.NoError(t, p.Shutdown(t.Context()))
				} else {
					time.Sleep(time.Minute)
				}
				require.Zero(t, p.Stats().Workers)
			})
		}
	}
}

func exit() { runtime.Goexit() }

func TestPool_NeverMoreWorkersThanTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(2), executor.WithMaxWorkers(7))
		var now, peak atomic.Int32
		f := func() {
			for n := now.Inc(); ; {
				if m := peak.Load(); n <= m || peak.CompareAndSwap(m, n) {
					break
				}
			}
			time.Sleep(10 * time.Millisecond)
			now.Dec()
		}
		for range 100 {
			require.NoError(t, p.Submit(f))
		}
		require.NoError(t, p.Shutdown(t.Context()))
		assert.EqualValues(t, 7, peak.Load())
		assert.Equal(t, 7, p.Stats().PeakWorkers)
	})
}

func TestPool_NoMoreWorkersThanCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executor.NewPool(executor.WithWorkers(1000))
		for range 100 {
			require.NoError(t, p.Submit(func() { time.Sleep(time.Second) }))
		}
		require.NoError(t, p.Shutdown(t.Context()))
		require.Equal(t, 100, p.Stats().PeakWorkers)
	})
}

// A panic handler that panics ends the process.
func TestPool_HandlerThatPanicsEndsTheProcess(t *testing.T) {
	const env = "TICKLESS_EXECUTOR_CRASH"
	if os.Getenv(env) != "" {
		p := executor.NewPool(executor.WithPanicHandler(func(v any, _ []byte) { panic(v) }))
		p.Submit(boom)
		p.Shutdown(context.Background())
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), env+"=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "panic: boom")
	require.Contains(t, string(out), "executor_test.boom", "with the stack of the callback")
}

func TestInline_HandlerThatPanicsReachesTheCaller(t *testing.T) {
	e := executor.NewInline(executor.WithPanicHandler(func(v any, _ []byte) { panic(v) }))
	require.PanicsWithValue(t, errBoom, func() { e.Submit(boom) })
	require.NoError(t, e.Shutdown(t.Context()), "the callback that panicked is counted nevertheless")
	require.EqualValues(t, 1, e.Stats().Panicked)
}

func TestPanicHandler_DefaultPrints(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	stderr := os.Stderr
	os.Stderr = w
	executor.NewInline().Submit(boom)
	os.Stderr = stderr
	w.Close()
	var out bytes.Buffer
	_, err = out.ReadFrom(r)
	require.NoError(t, err)
	require.Contains(t, out.String(), "executor: panic in a callback: boom")
	require.Contains(t, out.String(), "executor_test.boom(")
}

func TestOptions_Misuse(t *testing.T) {
	for want, f := range map[string]func(){
		"executor: WithPanicHandler: the func must not be nil":                     func() { executor.WithPanicHandler(nil) },
		"executor: WithWorkers: the number of workers must be positive, got 0":     func() { executor.WithWorkers(0) },
		"executor: WithMaxWorkers: the number of workers must be positive, got -1": func() { executor.WithMaxWorkers(-1) },
		"executor: NewPool: the workers must not be more than WithMaxWorkers(2), got 3": func() {
			executor.NewPool(executor.WithWorkers(3), executor.WithMaxWorkers(2))
		},
	} {
		require.PanicsWithValue(t, want, f)
	}
}

// TestPool_Stress submits callbacks of all sorts, and then calls Shutdown. Each accepted
// callback must run once. The others must count as rejected.
func TestPool_Stress(t *testing.T) {
	quiet := executor.WithPanicHandler(func(any, []byte) {})
	for name, opts := range map[string][]executor.PoolOption{
		"growing": {quiet},
		"max 3":   {quiet, executor.WithWorkers(1), executor.WithMaxWorkers(3)},
		"max 1":   {quiet, executor.WithMaxWorkers(1)},
	} {
		t.Run(name, func(t *testing.T) {
			p := executor.NewPool(opts...)
			var offered, accepted, ran, rejected atomic.Int64
			callback := func(i int) func() {
				return func() {
					defer ran.Inc()
					switch i % 97 {
					case 1:
						panic("boom")
					case 2:
						runtime.Goexit()
					case 3:
						time.Sleep(20 * time.Microsecond)
					case 4:
						runtime.Gosched()
					}
				}
			}
			var submitters sync.WaitGroup
			for g := range 4 {
				submitters.Go(func() {
					for i := g; ; i++ {
						fs := make([]func(), 1+(i*7)%300*(i%2))
						for j := range fs {
							fs[j] = callback(i + j)
						}
						var n int
						var err error
						if len(fs) == 1 {
							if err = p.Submit(fs[0]); err == nil {
								n = 1
							}
						} else {
							n, err = p.SubmitBatch(fs)
						}
						clear(fs)
						offered.Add(int64(len(fs)))
						accepted.Add(int64(n))
						rejected.Add(int64(len(fs) - n))
						if err == executor.ErrClosed {
							return
						}
						s := p.Stats()
						if s.Submitted != s.Run+uint64(s.Queued)+uint64(s.Running) {
							panic("submitted = run + queued + running does not hold")
						}
						for s.Queued > 20_000 { // on one proc, submitters would be minutes ahead of the workers
							runtime.Gosched()
							s = p.Stats()
						}
					}
				})
			}
			for ran.Load() < 5_000 {
				runtime.Gosched()
			}
			require.NoError(t, p.Shutdown(context.Background()))
			submitters.Wait()
			s := p.Stats()
			require.Equal(t, accepted.Load(), ran.Load())
			require.EqualValues(t, accepted.Load(), s.Submitted)
			require.EqualValues(t, accepted.Load(), s.Run)
			require.EqualValues(t, rejected.Load(), s.Rejected)
			conserve(t, s, int(offered.Load()))
			require.Zero(t, s.Queued+s.Running+s.Workers)
		})
	}
}
