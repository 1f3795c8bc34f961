package executor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// subject has the methods of Inline, Goroutines and Pool.
type subject interface {
	executor.Batcher
	io.Closer
	Shutdown(ctx context.Context) error
	Stats() executor.Stats
}

var subjects = []struct {
	name   string
	inline bool // callbacks run on the submitter
	new    func(...executor.Option) subject
}{
	{"inline", true, func(o ...executor.Option) subject { return executor.NewInline(o...) }},
	{"goroutines", false, func(o ...executor.Option) subject { return executor.NewGoroutines(o...) }},
	{"pool", false, newPool()},
	{"pool of one", false, newPool(executor.WithMaxWorkers(1))},
	{"fixed pool", false, newPool(executor.WithWorkers(4), executor.WithMaxWorkers(4))},
}

func newPool(with ...executor.PoolOption) func(...executor.Option) subject {
	return func(opts ...executor.Option) subject {
		all := slices.Clone(with)
		for _, o := range opts {
			all = append(all, o)
		}
		return executor.NewPool(all...)
	}
}

// onEach runs f for every executor, each in its own bubble. The bubble reports a callback
// that never runs, or a Shutdown that hangs, as a deadlock.
func onEach(t *testing.T, f func(t *testing.T, inline bool, make func(...executor.Option) subject)) {
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, s.inline, s.new) })
		})
	}
}

func conserve(t *testing.T, s executor.Stats, offered int) {
	t.Helper()
	assert.Equal(t, s.Submitted, s.Run+uint64(s.Queued)+uint64(s.Running), "submitted = run + queued + running: %+v", s)
	assert.Equal(t, uint64(offered), s.Submitted+s.Rejected, "offered = submitted + rejected: %+v", s)
}

func TestExecutor_RunsEachCallbackOnce(t *testing.T) {
	onEach(t, func(t *testing.T, _ bool, make func(...executor.Option) subject) {
		e := make()
		ran := [1001]atomic.Int32{} // the last callback is submitted in a batch
		fs := []func(){}
		for i := range ran {
			f := func() { ran[i].Inc() }
			if i%3 == 0 {
				require.NoError(t, e.Submit(f))
				continue
			}
			if fs = append(fs, f); len(fs) == 301 || i == len(ran)-1 {
				n, err := e.SubmitBatch(fs)
				require.NoError(t, err)
				require.Equal(t, len(fs), n)
				clear(fs) // the caller may reuse the slice
				fs = fs[:0]
			}
		}
		synctest.Wait()
		for i := range ran {
			require.EqualValues(t, 1, ran[i].Load(), "callback %d", i)
		}
		s := e.Stats()
		conserve(t, s, len(ran))
		assert.EqualValues(t, len(ran), s.Run)
		assert.Zero(t, s.Workers, "an idle executor keeps no goroutine")
		require.NoError(t, e.Shutdown(t.Context()))
	})
}

func TestExecutor_EmptyBatch(t *testing.T) {
	onEach(t, func(t *testing.T, _ bool, make func(...executor.Option) subject) {
		n, err := make().SubmitBatch(nil)
		assert.Zero(t, n)
		assert.NoError(t, err)
	})
}

var errBoom = errors.New("boom")

func boom() { panic(errBoom) }

func TestExecutor_PanicGoesToTheHandlerAndHarmsNobody(t *testing.T) {
	onEach(t, func(t *testing.T, _ bool, make func(...executor.Option) subject) {
		var mu sync.Mutex
		var values []any
		var stacks []string
		e := make(executor.WithPanicHandler(func(v any, stack []byte) {
			mu.Lock()
			defer mu.Unlock()
			values, stacks = append(values, v), append(stacks, string(stack))
		}))
		var ran atomic.Int32
		well := func() { ran.Inc() }
		for range 10 {
			n, err := e.SubmitBatch([]func(){well, boom, well, nil, boom, well})
			require.NoError(t, err)
			require.Equal(t, 6, n)
			require.NoError(t, e.Submit(boom))
			require.NoError(t, e.Submit(nil)) // as with time.AfterFunc(d, nil), the call panics later
		}
		require.NoError(t, e.Shutdown(t.Context()))
		assert.EqualValues(t, 30, ran.Load())
		conserve(t, e.Stats(), 80)
		assert.EqualValues(t, 80, e.Stats().Run)
		assert.EqualValues(t, 50, e.Stats().Panicked)
		require.Len(t, values, 50)
		booms := 0
		for i, v := range values {
			if v == error(errBoom) {
				booms++
				assert.Contains(t, stacks[i], "executor_test.boom(", "the stack is that of the panic")
			} else {
				assert.Implements(t, (*runtime.Error)(nil), v, "calling a nil func")
			}
		}
		assert.Equal(t, 30, booms)
	})
}

// A callback that calls runtime.Goexit, as t.FailNow does, does not block Shutdown for
// ever. (In pond it did: issue 135.)
func TestExecutor_GoexitStrandsNothing(t *testing.T) {
	onEach(t, func(t *testing.T, inline bool, make func(...executor.Option) subject) {
		var ran atomic.Int32
		e := make(executor.WithPanicHandler(func(any, []byte) { runtime.Goexit() }))
		offered := 0
		offer := func(fs ...func()) {
			offered += len(fs)
			e.SubmitBatch(fs)
		}
		for range 10 {
			for _, bad := range []func(){runtime.Goexit, boom} {
				var wg sync.WaitGroup
				wg.Go(func() { // because Goexit in a callback ends an Inline's submitter
					if inline {
						offer(bad)
					} else {
						offer(bad, func() { ran.Inc() }, bad)
					}
				})
				wg.Wait()
				offer(func() { ran.Inc() })
			}
		}
		require.NoError(t, e.Shutdown(t.Context()))
		s := e.Stats()
		assert.Equal(t, s.Submitted, s.Run)
		assert.Zero(t, s.Queued+s.Running+s.Workers)
		assert.GreaterOrEqual(t, ran.Load(), int32(20))
		if !inline { // an Inline's submitter has ended before it could count
			conserve(t, s, offered)
			assert.EqualValues(t, 40, ran.Load())
		}
	})
}

func TestExecutor_SubmitFromInsideACallback(t *testing.T) {
	onEach(t, func(t *testing.T, _ bool, make func(...executor.Option) subject) {
		e := make()
		var ran atomic.Int32
		var grow func(depth int) func()
		grow = func(depth int) func() {
			return func() {
				ran.Inc()
				if depth > 0 {
					assert.NoError(t, e.Submit(grow(depth-1)))
				}
			}
		}
		require.NoError(t, e.Submit(grow(100)))
		synctest.Wait()
		assert.EqualValues(t, 101, ran.Load())
		require.NoError(t, e.Shutdown(t.Context()))
	})
}

func TestExecutorShutdown_WaitsForWhatIsAccepted(t *testing.T) {
	onEach(t, func(t *testing.T, _ bool, make func(...executor.Option) subject) {
		e := make()
		var ended atomic.Int32
		began := time.Now()
		for range 3 {
			go e.Submit(func() { time.Sleep(time.Minute); ended.Inc() })
		}
		time.Sleep(time.Second)
		s := e.Stats()
		conserve(t, s, 3)
		require.NotZero(t, s.Running)
		require.Zero(t, s.Run)

		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, e.Shutdown(short), context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, time.Since(began))

		ran := false
		require.ErrorIs(t, e.Submit(func() { ran = true }), executor.ErrClosed)
		n, err := e.SubmitBatch([]func(){func() { ran = true }, func() { ran = true }})
		require.ErrorIs(t, err, executor.ErrClosed)
		require.Zero(t, n)

		var waiters sync.WaitGroup // several goroutines may wait
		for range 3 {
			waiters.Go(func() {
				assert.NoError(t, e.Shutdown(context.Background()))
				assert.EqualValues(t, 3, ended.Load())
			})
		}
		waiters.Wait()
		require.False(t, ran)
		conserve(t, e.Stats(), 6)
		require.EqualValues(t, 3, e.Stats().Rejected)

		over, cancel := context.WithCancel(t.Context())
		cancel()
		assert.NoError(t, e.Shutdown(over), "nothing is running, so ctx does not matter")
	})
}

func TestExecutorShutdown_FromInsideACallback(t *testing.T) {
	onEach(t, func(t *testing.T, inline bool, make func(...executor.Option) subject) {
		e := make()
		var err error
		n, batchErr := e.SubmitBatch([]func(){func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			err = e.Shutdown(ctx)
		}, func() {}})
		synctest.Wait()
		time.Sleep(time.Minute)
		require.NoError(t, e.Shutdown(t.Context()))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		if inline {
			require.Equal(t, 1, n, "shut down in the middle of the batch")
			require.ErrorIs(t, batchErr, executor.ErrClosed)
		}
		conserve(t, e.Stats(), 2)
	})
}

// Close does not wait and loses no callback. A later Shutdown waits.
func TestExecutorClose_RefusesAndWaitsForNothing(t *testing.T) {
	onEach(t, func(t *testing.T, _ bool, make func(...executor.Option) subject) {
		e := make()
		var ended atomic.Bool
		go e.Submit(func() { time.Sleep(time.Minute); ended.Store(true) })
		time.Sleep(time.Second)
		began := time.Now()
		for range 2 { // it may be called again
			require.NoError(t, e.Close())
		}
		require.Zero(t, time.Since(began))
		require.False(t, ended.Load())
		require.ErrorIs(t, e.Submit(func() { t.Error("a refused callback has run") }), executor.ErrClosed)
		require.NoError(t, e.Shutdown(t.Context()))
		require.True(t, ended.Load())
		conserve(t, e.Stats(), 2)
	})
}

// A callback may call Close, which does not wait for that callback.
func TestExecutorClose_FromInsideACallback(t *testing.T) {
	onEach(t, func(t *testing.T, _ bool, make func(...executor.Option) subject) {
		e := make()
		require.NoError(t, e.Submit(func() { assert.NoError(t, e.Close()) }))
		require.NoError(t, e.Shutdown(t.Context()))
		require.EqualValues(t, 1, e.Stats().Run)
	})
}

func TestExecutor_ZeroValueSaysWhatToCall(t *testing.T) {
	for name, e := range map[string]subject{
		"NewInline": new(executor.Inline), "NewGoroutines": new(executor.Goroutines), "NewPool": new(executor.Pool),
	} {
		for method, call := range map[string]func(){
			"Submit":      func() { e.Submit(func() {}) },
			"SubmitBatch": func() { e.SubmitBatch([]func(){func() {}}) },
			"Close":       func() { e.Close() },
			"Shutdown":    func() { e.Shutdown(t.Context()) },
		} {
			message := panicOf(call)
			assert.Contains(t, message, name, method)
			assert.Contains(t, message, "executor: ", method)
		}
	}
}

func panicOf(call func()) (message string) {
	defer func() { message = fmt.Sprint(recover()) }()
	call()
	return ""
}

func TestFunc_IsAnExecutor(t *testing.T) {
	var e executor.Executor = executor.Func(func(f func()) error { f(); return errBoom })
	ran := false
	require.Same(t, errBoom, e.Submit(func() { ran = true }))
	require.True(t, ran)
}

func TestExecutorShutdown_Unused(t *testing.T) {
	onEach(t, func(t *testing.T, _ bool, make func(...executor.Option) subject) {
		require.NoError(t, make().Shutdown(t.Context()))
	})
}

// A callback that has run is garbage, even while a later callback of its batch blocks.
func TestExecutor_KeepsNothingThatHasRun(t *testing.T) {
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			e := s.new()
			const n = 100
			var freed sync.WaitGroup
			freed.Add(n)
			release := make(chan struct{})
			var ran sync.WaitGroup
			ran.Add(n)
			func() {
				fs := make([]func(), 0, n+1)
				for range n {
					held := new([1 << 10]byte)
					runtime.AddCleanup(held, func(int) { freed.Done() }, 0)
					fs = append(fs, func() { held[0]++; ran.Done() })
				}
				if !s.inline {
					fs = append(fs, func() { <-release })
				}
				_, err := e.SubmitBatch(fs[:len(fs)-1])
				require.NoError(t, err)
				go e.Submit(fs[len(fs)-1])
			}()
			ran.Wait()
			collected := make(chan struct{})
			go func() { freed.Wait(); close(collected) }()
			for done := false; !done; {
				runtime.GC()
				select {
				case <-collected:
					done = true
				case <-time.After(time.Millisecond):
				}
			}
			close(release)
			require.NoError(t, e.Shutdown(context.Background()))
		})
	}
}
