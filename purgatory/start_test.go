package purgatory_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// The condition becomes true between the two checks. The second check completes the
// operation. Afterwards no list or timer refers to it.
func TestCompleteOrWatch_CompletedByTheSecondCheck(t *testing.T) {
	p, s, clk := virtual(t)
	o := new(op)
	o.try = func() bool { return o.asked.Load() == 2 }
	done, err := p.CompleteOrWatch(o, time.Second, "a", "b")
	require.NoError(t, err)
	require.True(t, done)
	require.EqualValues(t, 1, o.completed.Load())
	empty(t, p, s)
	require.Zero(t, s.Stats().Started, "no timer is started")
	clk.Advance(time.Hour)
	require.Zero(t, o.expired.Load())
}

// Calls that complete an operation while it is being added wait until its timer has
// started. Then they stop the timer.
func TestCompleteOrWatch_CompletedMeanwhile(t *testing.T) {
	for name, complete := range map[string]func(*purgatory.Purgatory[string], *op){
		"force": func(_ *purgatory.Purgatory[string], o *op) { o.ForceComplete() },
		"check": func(p *purgatory.Purgatory[string], o *op) {
			o.ready.Store(true)
			p.CheckAndComplete("b")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, s, clk := virtual(t)
			o := new(op)
			var wg sync.WaitGroup
			o.try = func() bool {
				ready := o.ready.Load()
				if o.asked.Load() == 2 {
					wg.Go(func() { complete(p, o) })
					time.Sleep(5 * time.Millisecond) // until the call waits for the lock
				}
				return ready
			}
			watch(t, p, o, time.Second, "a", "b")
			wg.Wait()
			require.True(t, o.IsCompleted())
			require.EqualValues(t, 1, o.completed.Load())
			empty(t, p, s)
			clk.Advance(time.Hour)
			require.Zero(t, o.expired.Load())
		})
	}
}

func TestCompleteOrWatch_AKeyTwice(t *testing.T) {
	p, s, clk := virtual(t)
	o := watch(t, p, new(op), time.Hour, "a", "b", "a")
	require.Equal(t, 1, p.Len())
	require.Equal(t, 3, p.Watched())
	require.Equal(t, 2, p.Stats().Keys)
	before := o.asked.Load()
	require.Zero(t, p.CheckAndComplete("a"))
	require.Equal(t, before+2, o.asked.Load())
	require.Equal(t, []purgatory.Operation[string]{o}, p.CancelForKey("a"))
	empty(t, p, s)

	watch(t, p, o, time.Hour, "a", "a")
	o.ready.Store(true)
	require.Equal(t, 1, p.CheckAndComplete("a"))
	require.EqualValues(t, 1, o.completed.Load())
	empty(t, p, s)

	o = watch(t, p, new(op), time.Second, "a", "a")
	clk.Advance(time.Second)
	require.EqualValues(t, 1, o.expired.Load())
	empty(t, p, s)
}

func TestCompleteOrWatch_WithoutKeys(t *testing.T) {
	p, s, clk := virtual(t)
	a := watch(t, p, new(op), time.Second)
	b := watch(t, p, new(op), time.Hour)
	c := watch(t, p, new(op), time.Hour)
	require.Equal(t, 3, p.Len())
	require.Zero(t, p.Watched())
	clk.Advance(time.Second)
	require.EqualValues(t, 1, a.expired.Load())
	require.True(t, b.ForceComplete())
	pending, err := shutDown(context.Background(), p)
	require.NoError(t, err)
	require.Equal(t, []purgatory.Operation[string]{c}, pending)
	empty(t, p, s)
}

func TestCompleteOrWatch_TimeoutOfZeroOrLess(t *testing.T) {
	p, s, clk := virtual(t)
	for _, timeout := range []time.Duration{0, -1, math.MinInt64} {
		o := watch(t, p, new(op), timeout, "a")
		require.EqualValues(t, 2, o.asked.Load())
		require.Zero(t, o.completed.Load(), "OnComplete ran inside CompleteOrWatch")
		clk.Advance(0)
		require.EqualValues(t, 1, o.expired.Load())

		o = new(op) // a complete operation is complete, however short the timeout
		o.ready.Store(true)
		done, err := p.CompleteOrWatch(o, timeout, "a")
		require.NoError(t, err)
		require.True(t, done)
		require.Zero(t, o.expired.Load())
	}
	empty(t, p, s)
}

func TestCompleteOrWatch_TheLongestTimeout(t *testing.T) {
	p, _, clk := virtual(t)
	o := watch(t, p, new(op), never, "a")
	clk.Advance(200 * 365 * 24 * time.Hour)
	require.False(t, o.IsCompleted())
	require.Equal(t, 1, p.Len())
}

// If the Scheduler refuses the timer, the operation is not watched.
func TestCompleteOrWatch_NoTimerToBeHad(t *testing.T) {
	clk := timertest.NewClock(epoch)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()), timer.WithMaxPending(1))
	p := purgatory.New[string](s)
	first := watch(t, p, new(op), time.Hour, "a")

	o := new(op)
	done, err := p.CompleteOrWatch(o, time.Hour, "a", "b")
	require.ErrorIs(t, err, timer.ErrTooManyPending)
	require.False(t, done)
	require.Equal(t, 1, p.Len())
	require.Equal(t, 1, p.Watched())
	require.False(t, o.IsCompleted())
	require.True(t, first.ForceComplete())
	watch(t, p, o, time.Hour, "b") // now the Scheduler has room
	require.True(t, o.ForceComplete())
	empty(t, p, s)

	s.Close()
	o = new(op)
	done, err = p.CompleteOrWatch(o, time.Hour, "a", "b")
	require.ErrorIs(t, err, timer.ErrClosed)
	require.False(t, done)
	require.Zero(t, o.completed.Load()+o.expired.Load())
	empty(t, p, s)
	o.ready.Store(true) // a complete operation needs no timer
	done, err = p.CompleteOrWatch(o, time.Hour, "a", "b")
	require.NoError(t, err)
	require.True(t, done)
}

func TestForceComplete_BeforeItWasGiven(t *testing.T) {
	p, s, _ := virtual(t)
	o := new(op)
	require.False(t, o.IsCompleted())
	require.True(t, o.ForceComplete())
	require.True(t, o.IsCompleted())
	require.False(t, o.ForceComplete())
	require.Zero(t, o.completed.Load(), "the operation has not been added")
	for range 2 {
		done, err := p.CompleteOrWatch(o, time.Hour, "a")
		require.NoError(t, err)
		require.False(t, done, "ForceComplete has completed it")
		require.EqualValues(t, 1, o.completed.Load())
		require.Zero(t, o.asked.Load())
	}
	empty(t, p, s)
}

func TestCompleteOrWatch_OperationThatWaitsPanics(t *testing.T) {
	p, s, _ := virtual(t)
	o := watch(t, p, new(op), time.Hour, "a")
	require.PanicsWithValue(t, "purgatory: CompleteOrWatch: the operation is already waiting",
		func() { p.CompleteOrWatch(o, time.Hour, "b") })
	require.Equal(t, 1, p.Len(), "it still waits")
	require.True(t, o.ForceComplete())
	empty(t, p, s)
}

type floatOp struct{ purgatory.Delayed[float64] }

func (*floatOp) TryComplete() bool { return false }
func (*floatOp) OnComplete()       {}
func (*floatOp) OnExpiration()     {}

type anyOp struct{ purgatory.Delayed[any] }

func (*anyOp) TryComplete() bool { return false }
func (*anyOp) OnComplete()       {}
func (*anyOp) OnExpiration()     {}

// CompleteOrWatch panics because of a bad key. The operation then waits for none
// of its keys, and may be added again.
func TestCompleteOrWatch_BadKeysPanic(t *testing.T) {
	s := timer.New(timer.WithClock(timertest.NewClock(epoch)))
	defer s.Close()
	fp := purgatory.New[float64](s)
	fo := new(floatOp)
	require.PanicsWithValue(t, "purgatory: a key must be equal to itself",
		func() { fp.CompleteOrWatch(fo, time.Hour, 1, 2, math.NaN()) })
	require.Zero(t, fp.Stats())
	_, err := fp.CompleteOrWatch(fo, time.Hour, 1, 2)
	require.NoError(t, err)
	require.Zero(t, fp.CheckAndComplete(math.NaN()))
	require.True(t, fo.ForceComplete())

	ap := purgatory.New[any](s)
	ao := new(anyOp)
	require.Panics(t, func() { ap.CompleteOrWatch(ao, time.Hour, 1, "b", []int{}) })
	require.Panics(t, func() { ap.CheckAndComplete([]int{}) })
	require.Zero(t, ap.Stats())
	_, err = ap.CompleteOrWatch(ao, time.Hour, 1, "b")
	require.NoError(t, err)
	require.Equal(t, 2, ap.Watched())
	require.True(t, ao.ForceComplete())
	require.Zero(t, s.Len())
}

// An operation expires even if the executor refuses its callbacks.
func TestCompleteOrWatch_AnExecutorThatRefuses(t *testing.T) {
	clk := timertest.NewClock(epoch)
	refuse := executor.Func(func(func()) error { return errors.New("no room") })
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(refuse))
	defer s.Close()
	p := purgatory.New[string](s)
	o := watch(t, p, new(op), time.Second, "a")
	clk.Advance(time.Hour)
	require.EqualValues(t, 1, s.Stats().Refused)
	require.Eventually(t, func() bool { return o.expired.Load() == 1 }, time.Minute, time.Millisecond, "the callbacks run on a goroutine of their own")
	require.True(t, o.IsCompleted())
	require.Zero(t, p.Len())
}
