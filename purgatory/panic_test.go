package purgatory_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/purgatory"
)

// panics collects the arguments of the panic handler.
type panics struct {
	mu     sync.Mutex
	values []any
}

func (ps *panics) option() purgatory.Option {
	return purgatory.WithPanicHandler(func(v any, stack []byte) {
		if len(stack) == 0 {
			panic("no stack")
		}
		ps.mu.Lock()
		defer ps.mu.Unlock()
		ps.values = append(ps.values, v)
	})
}

// KAFKA-17240: one operation that threw an exception kept the others from completing.
func TestKafka17240_PanicHarmsNoOther(t *testing.T) {
	var ps panics
	p, s, clk := virtual(t, ps.option())
	a := watch(t, p, new(op), time.Hour, "k", "a")
	bad := watch(t, p, new(op), time.Minute, "k", "bad")
	b := watch(t, p, new(op), time.Hour, "k", "b")
	worse := watch(t, p, new(op), time.Hour, "k", "worse")
	c := watch(t, p, new(op), time.Hour, "k", "c")
	for _, o := range []*op{a, b, worse, c} {
		o.ready.Store(true)
	}
	bad.try = func() bool { panic("in TryComplete") }
	worse.onComplete = func() { panic("in OnComplete") }

	require.Equal(t, 4, p.CheckAndComplete("k"), "worse was completed too")
	require.Equal(t, []any{"in TryComplete", "in OnComplete"}, ps.values)
	require.EqualValues(t, 2, p.Stats().Panics)
	for _, o := range []*op{a, b, worse, c} {
		require.True(t, o.IsCompleted())
		require.EqualValues(t, 1, o.completed.Load())
	}
	// The operation that panicked in TryComplete still waits, with its timeout.
	require.False(t, bad.IsCompleted())
	require.Equal(t, 1, p.Len())
	require.Equal(t, 2, p.Watched())
	bad.try = nil
	require.Zero(t, p.CheckAndComplete("bad"))
	clk.Advance(time.Minute)
	require.EqualValues(t, 1, bad.expired.Load())
	empty(t, p, s)
}

func TestPurgatory_PanicAtTheTimeout(t *testing.T) {
	var ps panics
	p, s, clk := virtual(t, ps.option())
	bad := &op{onComplete: func() { panic("in OnComplete") }, onExpiration: func() { panic("in OnExpiration") }}
	watch(t, p, bad, time.Second, "a")
	good := watch(t, p, new(op), time.Second, "a")
	clk.Advance(time.Second)
	require.Equal(t, []any{"in OnComplete", "in OnExpiration"}, ps.values)
	require.EqualValues(t, 1, bad.expired.Load(), "OnExpiration runs after a panic of OnComplete")
	require.EqualValues(t, 1, good.expired.Load())
	empty(t, p, s)
	err := p.Shutdown(t.Context())
	require.NoError(t, err, "no callback is running")
}

// A panic of TryComplete reaches the caller of CompleteOrWatch. Nothing of the
// operation remains in the purgatory.
func TestCompleteOrWatch_PanicInTryComplete(t *testing.T) {
	for at := int32(1); at <= 2; at++ {
		var ps panics
		p, s, _ := virtual(t, ps.option())
		o := new(op)
		o.try = func() bool {
			if o.asked.Load() == at {
				panic("in TryComplete")
			}
			return false
		}
		require.PanicsWithValue(t, "in TryComplete", func() { p.CompleteOrWatch(o, time.Hour, "a", "b") })
		require.Empty(t, ps.values)
		require.False(t, o.IsCompleted())
		empty(t, p, s)
		require.Zero(t, p.Stats().Entered)
		watch(t, p, o, time.Hour, "a") // the operation's lock is free, and it can be added again
		require.True(t, o.ForceComplete())
		empty(t, p, s)
	}
}

func TestPurgatory_PanicInOnCompleteReachesWhoAskedForIt(t *testing.T) {
	var ps panics
	p, s, _ := virtual(t, ps.option())
	o := &op{onComplete: func() { panic("in OnComplete") }}
	o.ready.Store(true)
	require.PanicsWithValue(t, "in OnComplete", func() { p.CompleteOrWatch(o, time.Hour, "a") })
	require.True(t, o.IsCompleted())

	o = watch(t, p, &op{onComplete: func() { panic("in OnComplete") }}, time.Hour, "a", "b")
	require.PanicsWithValue(t, "in OnComplete", func() { o.ForceComplete() })
	require.True(t, o.IsCompleted())
	require.False(t, o.ForceComplete())
	require.EqualValues(t, 1, o.completed.Load())
	require.Empty(t, ps.values)
	empty(t, p, s)
}

// runtime.Goexit in a callback, as by t.FailNow, only ends its goroutine.
func TestPurgatory_Goexit(t *testing.T) {
	p, s := realTime(t)
	inGoroutine := func(f func()) {
		done := make(chan bool)
		go func() {
			defer close(done)
			f()
			t.Error("the goroutine continued after Goexit")
		}()
		<-done
	}
	o := new(op)
	o.try = runtimeGoexit
	inGoroutine(func() { p.CompleteOrWatch(o, time.Hour, "a") })
	empty(t, p, s)

	o = watch(t, p, new(op), time.Hour, "a")
	o.try = runtimeGoexit
	inGoroutine(func() { p.CheckAndComplete("a") })
	require.Equal(t, 1, p.Len())
	o.try, o.onComplete = nil, func() { runtime.Goexit() }
	inGoroutine(func() { o.ForceComplete() })
	require.True(t, o.IsCompleted())

	o = watch(t, p, &op{onComplete: func() { runtime.Goexit() }}, time.Millisecond, "a")
	require.Eventually(t, func() bool { return o.expired.Load() == 1 }, 10*time.Second, time.Millisecond,
		"OnExpiration runs after OnComplete has ended the goroutine")
	err := p.Shutdown(context.Background())
	require.NoError(t, err)
	empty(t, p, s)
}

func runtimeGoexit() bool {
	runtime.Goexit()
	return false
}
