package purgatory_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

func TestShutdown_HandsBackWhatWaits(t *testing.T) {
	p, s, clk := virtual(t)
	want := map[purgatory.Operation[string]]bool{}
	for i, key := range keysUpTo(100) {
		o := watch(t, p, new(op), time.Hour, key, "a", "b")
		switch i % 4 {
		case 0:
			o.ForceComplete()
		case 1:
			p.CancelForKey(key)
		default:
			want[o] = true
		}
	}
	pending, err := shutDown(context.Background(), p)
	require.NoError(t, err)
	require.Len(t, pending, len(want))
	clk.Advance(2 * time.Hour)
	for _, o := range pending {
		require.True(t, want[o], "handed back twice, or was not waiting")
		delete(want, o)
		require.False(t, o.(*op).IsCompleted(), "completed silently")
		require.Zero(t, o.(*op).completed.Load()+o.(*op).expired.Load())
	}
	require.EqualValues(t, len(pending), p.Stats().HandedBack)
	empty(t, p, s)
	pending, err = shutDown(context.Background(), p)
	require.NoError(t, err)
	require.Empty(t, pending)
}

func TestPurgatory_UseAfterShutdown(t *testing.T) {
	p, s, clk := virtual(t)
	waits := watch(t, p, new(op), time.Hour, "a")
	err := p.Shutdown(context.Background())
	require.NoError(t, err)
	for _, keys := range [][]string{{"a"}, {}, {"a", "b"}} {
		o := new(op)
		o.ready.Store(true)
		done, err := p.CompleteOrWatch(o, time.Second, keys...)
		require.ErrorIs(t, err, purgatory.ErrClosed)
		require.False(t, done)
		require.Zero(t, o.asked.Load())
		require.False(t, o.IsCompleted())
	}
	require.Zero(t, p.CheckAndComplete("a"))
	require.Nil(t, p.CancelForKey("a"))
	clk.Advance(time.Hour)
	refused := new(op)
	_, err = p.CompleteOrWatch(refused, time.Second, "a")
	require.ErrorIs(t, err, purgatory.ErrClosed)
	require.True(t, refused.ForceComplete())
	require.EqualValues(t, 1, refused.completed.Load())
	require.False(t, waits.IsCompleted())
	require.True(t, waits.ForceComplete(), "the caller may complete an operation that was handed back")
	require.EqualValues(t, 1, waits.completed.Load())
	empty(t, p, s)
}

// Shutdown runs while an operation is being added. Either TakeLeftover returns the
// operation, or CompleteOrWatch returns the error, but not both.
func TestShutdown_RacesWithStarts(t *testing.T) {
	for range 100 {
		s := timer.New()
		p := purgatory.New[string](s, purgatory.WithShards(4))
		var given, refused, atOnce atomic.Int64
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for range 3 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					o := new(op)
					o.try = func() bool { return o.asked.Load() == 2 && o.name == "second" }
					if given.Inc()%3 == 0 {
						o.name = "second"
					}
					done, err := p.CompleteOrWatch(o, time.Hour, "a", "b", "c", "d")
					switch {
					case err != nil:
						require.ErrorIs(t, err, purgatory.ErrClosed)
						refused.Inc()
					case done:
						atOnce.Inc()
					}
				}
			})
		}
		time.Sleep(50 * time.Microsecond)
		pending, err := shutDown(context.Background(), p)
		require.NoError(t, err)
		close(stop)
		wg.Wait()
		require.Equal(t, given.Load(), refused.Load()+atOnce.Load()+int64(len(pending)), "an operation was lost")
		empty(t, p, s)
		s.Close()
	}
}

// A Close that runs at the same time as another returns only when TakeLeftover has all
// operations.
func TestClose_WhileAnotherCloses(t *testing.T) {
	s := timer.New()
	defer s.Close()
	const n = 200
	for range 300 {
		p := purgatory.New[string](s, purgatory.WithShards(1))
		for range n {
			watch(t, p, new(op), time.Hour, "a")
		}
		var wg sync.WaitGroup
		wg.Go(func() { p.Close() })
		pending, err := shutDown(context.Background(), p)
		wg.Wait()
		require.NoError(t, err)
		require.Len(t, pending, n)
	}
}

// Shutdown waits for the callbacks of expired operations until ctx ends.
func TestShutdown_WaitsForCallbacks(t *testing.T) {
	p, s := realTime(t)
	started, proceed := make(chan bool), make(chan bool)
	o := &op{onExpiration: func() { close(started); <-proceed }}
	watch(t, p, o, time.Millisecond, "a")
	waits := watch(t, p, new(op), time.Hour, "a")
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	pending, err := shutDown(ctx, p)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, []purgatory.Operation[string]{waits}, pending, "handed back although a callback is running")
	time.AfterFunc(5*time.Millisecond, func() { close(proceed) })
	pending, err = shutDown(t.Context(), p)
	require.NoError(t, err)
	require.Empty(t, pending)
	require.EqualValues(t, 1, o.expired.Load())
	empty(t, p, s)
}

// Shutdown runs while many operations expire. When it returns, each operation is in
// TakeLeftover, or its callbacks have returned.
func TestShutdown_InTheMiddleOfExpiries(t *testing.T) {
	const rounds, each = 1500, 64
	for range rounds {
		clk := timertest.NewClock(epoch)
		s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
		p := purgatory.New[string](s)
		ops := make([]op, each)
		for i := range ops {
			watch(t, p, &ops[i], time.Second, "a")
		}
		advanced := make(chan struct{})
		go func() {
			defer close(advanced)
			clk.Advance(time.Second)
		}()
		for ops[each/2].expired.Load() == 0 {
			runtime.Gosched()
		}
		pending, err := shutDown(t.Context(), p)
		require.NoError(t, err)
		over := 0
		for i := range ops {
			over += int(ops[i].expired.Load())
		}
		require.Equal(t, each, over+len(pending))
		<-advanced
		for _, o := range pending {
			require.Zero(t, o.(*op).expired.Load(), "handed back, and expired afterwards")
		}
		s.Close()
	}
}

// A callback that calls Shutdown waits for itself, until ctx ends.
func TestShutdown_FromInsideACallback(t *testing.T) {
	p, s, clk := virtual(t)
	var err error
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := &op{onComplete: func() { err = p.Shutdown(ctx) }}
	watch(t, p, o, time.Second, "a")
	clk.Advance(time.Second)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 1, o.expired.Load())
	err = p.Shutdown(t.Context())
	require.NoError(t, err)
	empty(t, p, s)
}
