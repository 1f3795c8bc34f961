package timer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"
	"golang.org/x/sync/errgroup"

	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// The cases are those of package context's own tests, where they can be observed
// from outside.

var (
	errParent = errors.New("the parent's cause")
	errChild  = errors.New("the child's cause")
	errSlow   = errors.New("too slow")
)

const forever = 1_000_000 * time.Second

func TestContext_Deadline(t *testing.T) {
	for name, with := range map[string]func(s *timer.Scheduler, parent context.Context, d time.Duration) (context.Context, context.CancelFunc){
		"WithTimeout": (*timer.Scheduler).WithTimeout,
		"WithDeadline": func(s *timer.Scheduler, parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
			return s.WithDeadline(parent, epoch.Add(d))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, clk := virtual(t)
			ctx, cancel := with(s, context.Background(), time.Second)
			defer cancel()
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, epoch.Add(time.Second), deadline)
			child, cancelChild := context.WithCancel(wrapped{ctx})
			defer cancelChild()
			grandchild, cancelGrandchild := s.WithTimeout(wrapped{ctx}, forever)
			defer cancelGrandchild()
			clk.Advance(time.Second - 1)
			requireNotDone(t, ctx, "early")
			requireNotDone(t, child, "early")
			clk.Advance(1)
			requireDone(t, ctx, context.DeadlineExceeded, name)
			requireDone(t, wrapped{ctx}, context.DeadlineExceeded, name)
			<-child.Done() // by way of a goroutine
			require.Equal(t, context.DeadlineExceeded, child.Err())
			<-grandchild.Done()
			require.Equal(t, context.DeadlineExceeded, grandchild.Err())
			cancel()
			require.Equal(t, context.DeadlineExceeded, ctx.Err(), "it was first")
			require.Zero(t, s.Len())

			var timeout interface{ Timeout() bool }
			require.ErrorAs(t, ctx.Err(), &timeout)
			require.True(t, timeout.Timeout())
			var temporary interface{ Temporary() bool }
			require.ErrorAs(t, ctx.Err(), &temporary)
			require.True(t, temporary.Temporary())
			var netErr net.Error
			require.ErrorAs(t, ctx.Err(), &netErr)
			balanced(t, s.Stats())
		})
	}
}

func TestContext_DeadlineThatHasPassed(t *testing.T) {
	s, _ := virtual(t)
	for _, d := range []time.Duration{0, -1, -time.Hour, -1 << 63} {
		ctx, cancel := s.WithTimeoutCause(context.Background(), d, errSlow)
		requireDone(t, ctx, context.DeadlineExceeded, "at once")
		require.Equal(t, errSlow, context.Cause(ctx))
		cancel()
		requireDone(t, ctx, context.DeadlineExceeded, "it was first")
		parent, cancelParent := context.WithCancel(context.Background())
		cancelParent()
		ctx, cancel = s.WithTimeout(parent, d)
		requireDone(t, ctx, context.Canceled, "the parent was first")
		cancel()
	}
	require.Zero(t, s.Stats().Started, "no timer was needed")
}

func TestContext_Cancel(t *testing.T) {
	s, clk := virtual(t)
	ctx, cancel := s.WithTimeoutCause(context.Background(), time.Hour, errSlow)
	blocked := ctx.Done()
	require.Equal(t, blocked, ctx.Done(), "Done is always the same")
	requireNotDone(t, ctx, "not yet")
	require.Equal(t, 1, s.Len())
	cancel()
	requireClosed(t, blocked)
	requireDone(t, ctx, context.Canceled, "cancel")
	require.Equal(t, context.Canceled, context.Cause(ctx), "the cause of a timeout is not that of cancel")
	require.Zero(t, s.Len(), "the timer is released at once")
	cancel()
	cancel()
	clk.Advance(2 * time.Hour)
	requireDone(t, ctx, context.Canceled, "it was first")
	require.EqualValues(t, 1, s.Stats().Stopped)
	require.Zero(t, s.Stats().Fired)

	// Done asked for afterwards is closed too.
	ctx, cancel = s.WithTimeout(context.Background(), time.Hour)
	cancel()
	requireDone(t, ctx, context.Canceled, "cancel")
}

func TestContext_Value(t *testing.T) {
	s, clk := virtual(t)
	outer := context.WithValue(context.Background(), key1(1), "a")
	ctx, cancel := s.WithTimeout(outer, time.Second)
	defer cancel()
	inner := context.WithValue(ctx, key2(1), "b")
	check := func() {
		t.Helper()
		require.Equal(t, "a", ctx.Value(key1(1)))
		require.Nil(t, ctx.Value(key2(1)))
		require.Nil(t, ctx.Value(1))
		require.Equal(t, "a", inner.Value(key1(1)))
		require.Equal(t, "b", inner.Value(key2(1)))
		require.Nil(t, inner.Value(key2(2)))
	}
	check()
	clk.Advance(time.Second)
	requireDone(t, inner, context.DeadlineExceeded, "inner")
	check()
}

func TestContext_EarlierParentDeadlineWins(t *testing.T) {
	s, clk := virtual(t)
	parent, cancelParent := s.WithTimeoutCause(context.Background(), time.Second, errSlow)
	defer cancelParent()
	parent.Done()
	require.Equal(t, 1, s.Len())
	child, cancel := s.WithTimeoutCause(parent, time.Hour, errChild)
	defer cancel()
	child.Done()
	require.Equal(t, 1, s.Len(), "no timer for what cannot come first")
	deadline, _ := child.Deadline()
	require.Equal(t, epoch.Add(time.Second), deadline)
	sooner, cancelSooner := s.WithTimeout(parent, time.Millisecond)
	defer cancelSooner()
	deadline, _ = sooner.Deadline()
	require.Equal(t, epoch.Add(time.Millisecond), deadline)
	clk.Advance(time.Millisecond)
	requireDone(t, sooner, context.DeadlineExceeded, "sooner")
	requireNotDone(t, parent, "parent")
	requireNotDone(t, child, "child")
	clk.Advance(time.Second)
	requireDone(t, child, context.DeadlineExceeded, "child")
	require.Equal(t, errSlow, context.Cause(child), "the parent's")

	std, cancelStd := context.WithDeadline(context.Background(), epoch.Add(time.Minute))
	defer cancelStd()
	child, cancel = s.WithDeadline(std, epoch.Add(time.Hour))
	defer cancel()
	deadline, _ = child.Deadline()
	require.Equal(t, epoch.Add(time.Minute), deadline)
}

func TestContext_Cause(t *testing.T) {
	s, _ := virtual(t)
	bg := context.Background()
	for _, c := range []struct {
		name       string
		ctx        func() context.Context
		err, cause error
	}{
		{"pending", func() context.Context {
			ctx, _ := s.WithTimeoutCause(bg, forever, errSlow)
			return ctx
		}, nil, nil},
		{"timeout", func() context.Context {
			ctx, _ := s.WithTimeout(bg, 0)
			return ctx
		}, context.DeadlineExceeded, context.DeadlineExceeded},
		{"timeout with a cause", func() context.Context {
			ctx, cancel := s.WithTimeoutCause(bg, 0, errSlow)
			cancel()
			return ctx
		}, context.DeadlineExceeded, errSlow},
		{"deadline with a cause", func() context.Context {
			ctx, _ := s.WithDeadlineCause(bg, epoch, errSlow)
			return ctx
		}, context.DeadlineExceeded, errSlow},
		{"cancelled", func() context.Context {
			ctx, cancel := s.WithTimeoutCause(bg, forever, errSlow)
			cancel()
			return ctx
		}, context.Canceled, context.Canceled},
		{"parent cancelled", func() context.Context {
			parent, cancel := context.WithCancelCause(bg)
			ctx, _ := s.WithTimeoutCause(parent, forever, errSlow)
			cancel(errParent)
			return ctx
		}, context.Canceled, errParent},
		{"parent cancelled before", func() context.Context {
			parent, cancel := context.WithCancelCause(bg)
			cancel(errParent)
			ctx, _ := s.WithTimeoutCause(parent, forever, errSlow)
			return ctx
		}, context.Canceled, errParent},
		{"parent cancelled before, deadline passed", func() context.Context {
			parent, cancel := context.WithCancelCause(bg)
			cancel(errParent)
			ctx, _ := s.WithTimeoutCause(parent, -1, errSlow)
			return ctx
		}, context.Canceled, errParent},
		{"timeout, parent cancelled after", func() context.Context {
			parent, cancel := context.WithCancelCause(bg)
			ctx, _ := s.WithTimeoutCause(parent, 0, errSlow)
			cancel(errParent)
			return ctx
		}, context.DeadlineExceeded, errSlow},
		{"timeout without a cause, parent cancelled after", func() context.Context {
			// Cause asks for the nearest of package context's own, which is the
			// parent.
			parent, cancel := context.WithCancelCause(bg)
			ctx, _ := s.WithTimeout(parent, 0)
			cancel(errParent)
			return ctx
		}, context.DeadlineExceeded, context.DeadlineExceeded},
		{"cancelled, parent cancelled after", func() context.Context {
			parent, cancelParent := context.WithCancelCause(bg)
			ctx, cancel := s.WithTimeoutCause(parent, forever, errSlow)
			cancel()
			cancelParent(errParent)
			return ctx
		}, context.Canceled, context.Canceled},
		{"value of a timeout", func() context.Context {
			ctx, _ := s.WithTimeoutCause(bg, 0, errSlow)
			return context.WithValue(ctx, key1(1), 1)
		}, context.DeadlineExceeded, errSlow},
		{"child with a cause", func() context.Context {
			ctx, _ := s.WithTimeout(bg, forever)
			child, cancel := context.WithCancelCause(ctx)
			cancel(errChild)
			return child
		}, context.Canceled, errChild},
		{"parent of a child with a cause", func() context.Context {
			ctx, _ := s.WithTimeout(bg, forever)
			_, cancel := context.WithCancelCause(ctx)
			cancel(errChild)
			return ctx
		}, nil, nil},
		{"child of a timeout", func() context.Context {
			ctx, _ := s.WithTimeoutCause(bg, 0, errSlow)
			child, cancelChild := context.WithCancel(ctx)
			cancelChild()
			return child
		}, context.DeadlineExceeded, errSlow},
		{"child with a cause before the parent's", func() context.Context {
			parent, cancelParent := context.WithCancelCause(bg)
			ctx, _ := s.WithTimeout(parent, forever)
			child, cancel := context.WithCancelCause(ctx)
			cancel(errChild)
			cancelParent(errParent)
			return child
		}, context.Canceled, errChild},
		{"child with a cause after ours", func() context.Context {
			ctx, cancelCtx := s.WithTimeoutCause(bg, forever, errSlow)
			child, cancel := context.WithCancelCause(ctx)
			cancelCtx()
			cancel(errChild)
			return child
		}, context.Canceled, context.Canceled},
		{"ours in ours", func() context.Context {
			parent, cancel := s.WithTimeout(bg, forever)
			ctx, _ := s.WithTimeoutCause(parent, 0, errSlow)
			cancel()
			return ctx
		}, context.DeadlineExceeded, errSlow},
		{"without cancel", func() context.Context {
			ctx, cancel := s.WithTimeoutCause(bg, 0, errSlow)
			cancel()
			return context.WithoutCancel(ctx)
		}, nil, nil},
		{"timeout under one without cancel", func() context.Context {
			parent, cancel := s.WithTimeoutCause(bg, 0, errParent)
			cancel()
			ctx, _ := s.WithTimeoutCause(context.WithoutCancel(parent), 0, errSlow)
			return ctx
		}, context.DeadlineExceeded, errSlow},
		{"custom context around ours, cancelled before", func() context.Context {
			ctx, cancel := s.WithTimeoutCause(bg, forever, errSlow)
			outer := &ownDone{ctx, make(chan struct{})}
			cancel()
			close(outer.done)
			return outer
		}, context.Canceled, context.Canceled},
	} {
		ctx := c.ctx()
		require.Equal(t, c.err, ctx.Err(), c.name)
		require.Equal(t, c.cause, context.Cause(ctx), c.name)
		require.Equal(t, c.err != nil, ctx.Done() != nil && isDone(ctx), c.name)
	}
}

func TestContext_CauseRace(t *testing.T) {
	s, _ := virtual(t)
	parent, cancelParent := context.WithCancelCause(context.Background())
	ctx, cancel := s.WithTimeout(parent, forever)
	defer cancel()
	go cancelParent(errParent)
	for {
		if err := context.Cause(ctx); err != nil {
			if !causeRaces || err != context.Canceled {
				require.Equal(t, errParent, err)
			}
			require.Equal(t, errParent, context.Cause(ctx), "and ever after")
			return
		}
		runtime.Gosched()
	}
}

// Every kind of parent: its end reaches ours, for who asks and for who waits.
func TestContext_ParentCancelled(t *testing.T) {
	bg := context.Background()
	for name, make := range map[string]func(s *timer.Scheduler) (context.Context, func()){
		"context.WithCancel": func(*timer.Scheduler) (context.Context, func()) {
			return context.WithCancel(bg)
		},
		"context.WithTimeout": func(*timer.Scheduler) (context.Context, func()) {
			return context.WithDeadline(bg, epoch.Add(forever))
		},
		"ours": func(s *timer.Scheduler) (context.Context, func()) {
			return s.WithTimeout(bg, forever)
		},
		"ours in a value": func(s *timer.Scheduler) (context.Context, func()) {
			ctx, cancel := s.WithTimeout(bg, forever)
			return context.WithValue(context.WithValue(ctx, key1(1), 1), key1(2), 2), cancel
		},
		"ours in a wrapper": func(s *timer.Scheduler) (context.Context, func()) {
			ctx, cancel := s.WithTimeout(bg, forever)
			return wrapped{ctx}, cancel
		},
		"a context in a wrapper": func(*timer.Scheduler) (context.Context, func()) {
			ctx, cancel := context.WithCancel(bg)
			return wrapped{ctx}, cancel
		},
		"a child of ours": func(s *timer.Scheduler) (context.Context, func()) {
			ctx, cancel := s.WithTimeout(bg, forever)
			child, cancelChild := context.WithCancel(ctx)
			t.Cleanup(cancelChild)
			return child, cancel
		},
		"ours around ours": func(s *timer.Scheduler) (context.Context, func()) {
			ctx, cancel := s.WithTimeout(bg, forever)
			child, _ := s.WithTimeout(ctx, forever)
			return child, cancel
		},
		"with an AfterFunc": func(*timer.Scheduler) (context.Context, func()) {
			c := newRegistering()
			return c, c.cancel
		},
		"unknown": func(*timer.Scheduler) (context.Context, func()) {
			c := newUnknown()
			return c, c.cancel
		},
		"with a Done of its own around ours": func(s *timer.Scheduler) (context.Context, func()) {
			ctx, cancel := s.WithTimeout(bg, forever)
			d := &ownDone{ctx, make(chan struct{})}
			return d, func() { cancel(); close(d.done) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := virtual(t)
			parent, cancelParent := make(s)
			parent.Done()
			pending := s.Len()
			ctx, cancel := s.WithTimeoutCause(parent, forever/2, errSlow)
			defer cancel()
			blocked, cancelBlocked := s.WithTimeoutCause(parent, forever/2, errSlow)
			defer cancelBlocked()
			done := blocked.Done()
			asked, cancelAsked := s.WithTimeout(parent, forever/2)
			defer cancelAsked()
			requireNotDone(t, ctx, "not yet")
			// Those under parents of another kind wait from the start.
			foreign := name == "with an AfterFunc" || name == "unknown" || strings.Contains(name, "of its own")
			if foreign || strings.Contains(name, "wrapper") {
				require.Equal(t, pending+3, s.Len())
			} else {
				require.Equal(t, pending+2, s.Len())
			}

			cancelParent()
			if foreign { // as package context has it
				<-ctx.Done()
				<-asked.Done()
			}
			require.Equal(t, context.Canceled, ctx.Err(), "Err tells at once")
			require.True(t, isDone(ctx))
			require.True(t, isDone(asked), "Done tells at once")
			require.Equal(t, context.Canceled, asked.Err())
			<-done
			require.Equal(t, context.Canceled, blocked.Err())
			require.Equal(t, context.Canceled, context.Cause(ctx))
			requireReleased(t, s)
			after, cancelAfter := s.WithTimeout(parent, forever/2)
			defer cancelAfter()
			requireDone(t, after, context.Canceled, "of a parent that is done")
			require.Zero(t, s.Len(), "it needs no timer")
			balanced(t, s.Stats())
		})
	}
}

// A parent that ends lets go of the context's hook, and a context that ends of
// the parent's.
func TestContext_UnregistersFromTheParent(t *testing.T) {
	s, clk := virtual(t)
	parent := newRegistering()
	ctx, cancel := s.WithTimeout(parent, time.Second)
	_, cancelOther := s.WithTimeout(parent, time.Hour)
	require.Len(t, parent.funcs, 1, "one for both")
	cancelOther()
	require.Len(t, parent.funcs, 1, "cancel")
	clk.Advance(time.Second)
	requireDone(t, ctx, context.DeadlineExceeded, "timeout")
	requireUnregistered(t, parent)
	cancel()
	_, cancel = s.WithTimeout(parent, 0)
	require.Empty(t, parent.funcs, "at once")
	cancel()

	// The deadline passes while the context registers with its parent.
	slow := &slowlyRegistering{parent, func() { clk.Advance(time.Second) }}
	ctx, cancel = s.WithTimeout(slow, time.Second)
	defer cancel()
	requireDone(t, ctx, context.DeadlineExceeded, "timeout")
	requireUnregistered(t, parent)
}

// What is derived from ours is done when cancel returns, and costs no goroutine.
func TestContext_ChildrenOfOurs(t *testing.T) {
	s, clk := virtual(t)
	for name, end := range map[string]func(cancel func()){
		"cancel":  func(cancel func()) { cancel() },
		"timeout": func(func()) { clk.Advance(time.Second) },
	} {
		ctx, cancel := s.WithTimeout(context.Background(), time.Second)
		before := runtime.NumGoroutine()
		var children []context.Context
		add := func(child context.Context, _ any) { children = append(children, child) }
		ran := make(chan int, 100)
		for i := range 100 {
			add(context.WithCancel(ctx))
			add(context.WithTimeout(ctx, forever))
			add(context.WithCancelCause(ctx))
			// Their timers are for the same moment as ctx's, and come after it.
			add(s.WithTimeout(ctx, time.Second))
			add(s.WithTimeout(context.WithValue(ctx, key1(1), 1), time.Second))
			add(context.WithValue(ctx, key1(1), 1), nil)
			grandchild, cancelGrandchild := context.WithCancel(children[len(children)-6])
			defer cancelGrandchild()
			add(context.WithTimeout(grandchild, forever))
			context.AfterFunc(ctx, func() { ran <- i })
		}
		requireGoroutines(t, before)
		free := context.WithoutCancel(ctx)
		for _, c := range children {
			requireNotDone(t, c, name)
		}
		var blocked []<-chan struct{}
		for _, c := range children {
			blocked = append(blocked, c.Done())
		}
		end(cancel)
		for i, done := range blocked {
			requireClosed(t, done, "%s: %d", name, i)
		}
		want := ctx.Err()
		require.Error(t, want)
		for i, c := range children {
			require.Equal(t, want, c.Err(), "%s: %d: %v", name, i, c)
			require.True(t, isDone(c), "%s: %d: %v", name, i, c)
			require.Equal(t, want, context.Cause(c))
		}
		seen := map[int]bool{}
		for range 100 {
			seen[<-ran] = true
		}
		require.Len(t, seen, 100)
		require.NoError(t, free.Err())
		require.Nil(t, free.Done())
		cancel()
		require.Zero(t, s.Len())
	}
}

func TestContext_NoGoroutineForOurs(t *testing.T) {
	s := timer.New()
	defer s.Close()
	cancellable, stop := context.WithCancel(context.Background())
	ours, stopOurs := s.WithTimeout(cancellable, forever)
	ours.Done()
	// The alarm keeps one while something is pending.
	before := runtime.NumGoroutine()
	for _, parent := range []context.Context{context.Background(), cancellable, ours, context.WithValue(ours, key1(1), 1), newRegistering()} {
		for range 1000 {
			ctx, cancel := s.WithTimeout(parent, forever/2)
			defer cancel()
			ctx.Done()
		}
	}
	requireGoroutines(t, before)
	require.Equal(t, 5001, s.Len())
	stopOurs()
	requireGoroutines(t, before)
	require.Equal(t, 3000, s.Len())
	stop()
}

// Many short children of one long-lived context leave nothing behind.
func TestContext_ChildrenAreRemoved(t *testing.T) {
	s, clk := virtual(t)
	parent, cancelParent := s.WithTimeout(context.Background(), forever)
	defer cancelParent()
	std, cancelStd := context.WithCancel(context.Background())
	defer cancelStd()
	const n = 10_000
	for name, child := range map[string]func(){
		"context.WithCancel":  func() { _, cancel := context.WithCancel(parent); cancel() },
		"context.WithTimeout": func() { _, cancel := context.WithTimeout(parent, time.Hour); cancel() },
		"context.AfterFunc":   func() { context.AfterFunc(parent, func() {})() },
		"ours": func() {
			ctx, cancel := s.WithTimeout(parent, time.Hour)
			ctx.Done()
			cancel()
		},
		"ours that times out": func() { s.WithTimeout(parent, time.Millisecond); clk.Advance(time.Millisecond) },
		"ours under std":      func() { _, cancel := s.WithTimeout(std, time.Hour); cancel() },
		"ours under std that times out": func() {
			s.WithTimeout(std, time.Millisecond)
			clk.Advance(time.Millisecond)
		},
	} {
		child()
		before := heapInUse()
		for range n {
			child()
		}
		if grown := heapInUse() - before; grown > n*40 {
			t.Errorf("%s: %d bytes are left of each of %d children", name, grown/n, n)
		}
	}
	require.Equal(t, 1, s.Len())
	runtime.KeepAlive(parent)
	runtime.KeepAlive(std)
}

// heapInUse returns how many bytes are in use.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // what the first one finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Nothing keeps a context that was cancelled, nor what its hooks refer to; and
// one hook's stop function does not keep the others.
func TestContext_MemoryIsReleased(t *testing.T) {
	type payload [1 << 16]byte
	s, _ := virtual(t)
	parent, cancelParent := s.WithTimeout(context.Background(), forever)

	p := new(payload)
	w := weak.Make(p)
	ctx, cancel := s.WithTimeout(context.WithValue(parent, key1(1), p), forever/2)
	p = nil
	require.NotNil(t, ctx.Value(key1(1)))
	cancel()
	ctx, cancel = nil, nil
	runtime.GC()
	require.Nil(t, w.Value(), "a cancelled context")

	var stops []func() bool
	var ws []weak.Pointer[payload]
	for range 5 {
		p := new(payload)
		ws = append(ws, weak.Make(p))
		stops = append(stops, context.AfterFunc(parent, func() { runtime.KeepAlive(p) }))
	}
	require.True(t, stops[1]())
	first, last := stops[0], stops[4]
	stopped := stops[1]
	stops = nil
	runtime.GC()
	require.NotNil(t, ws[2].Value())
	cancelParent()
	for i := 2; i < 4; i++ {
		for ws[i].Value() != nil { // its function may still be on its way
			runtime.GC()
		}
	}
	require.False(t, first())
	require.False(t, last())
	require.False(t, stopped())
	runtime.KeepAlive(parent)
}

func TestContext_NilParentPanics(t *testing.T) {
	s, _ := virtual(t)
	const msg = "timer: cannot create a context from a nil parent"
	var none context.Context
	require.PanicsWithValue(t, msg, func() { s.WithTimeout(none, 1) })
	require.PanicsWithValue(t, msg, func() { s.WithTimeoutCause(none, 1, nil) })
	require.PanicsWithValue(t, msg, func() { s.WithDeadline(none, epoch) })
	require.PanicsWithValue(t, msg, func() { s.WithDeadlineCause(none, epoch, nil) })
}

func TestContext_String(t *testing.T) {
	s, _ := virtual(t)
	ctx, cancel := s.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	require.True(t, strings.HasPrefix(fmt.Sprint(ctx), "context.Background.WithDeadline(2030-01-01 01:00:00"), "%v", ctx)
	inner, cancelInner := s.WithTimeout(context.WithValue(ctx, key1(1), "v"), time.Minute)
	defer cancelInner()
	require.Contains(t, fmt.Sprint(inner), ".WithValue(timer_test.key1, v).WithDeadline(2030-01-01 00:01:00")
	other, cancelOther := s.WithTimeout(wrapped{context.Background()}, time.Minute)
	defer cancelOther()
	require.True(t, strings.HasPrefix(fmt.Sprint(other), "timer_test.wrapped.WithDeadline("), "%v", other)
}

func TestContext_Allocations(t *testing.T) {
	s, _ := virtual(t)
	bg := context.Background()
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		_, cancel := s.WithTimeout(bg, time.Hour)
		cancel()
	}), 2.0)
}

// A Scheduler that is closed: the context is one of package
// context's, which has a timer of its own.
func TestContext_OnAClosedScheduler(t *testing.T) {
	for range 1 {
		synctest.Test(t, func(t *testing.T) {
			s := timer.New()
			s.Close()
			parent, cancelParent := context.WithCancelCause(context.Background())
			ctx, cancel := s.WithTimeoutCause(parent, time.Second, errSlow)
			defer cancel()
			other, cancelOther := s.WithTimeoutCause(parent, time.Hour, errSlow)
			defer cancelOther()
			require.Zero(t, s.Stats().FellBack, "nobody waits")
			done, otherDone := ctx.Done(), other.Done()
			require.EqualValues(t, 2, s.Stats().FellBack)
			require.Zero(t, s.Stats().Rejected)
			balanced(t, s.Stats())
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, time.Now().Add(time.Second), deadline)
			time.Sleep(time.Second - 1)
			requireNotDone(t, ctx, "early")
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			requireClosed(t, done)
			requireDone(t, ctx, context.DeadlineExceeded, "timeout")
			require.Equal(t, errSlow, context.Cause(ctx))
			cancelParent(errParent)
			synctest.Wait()
			requireClosed(t, otherDone)
			requireDone(t, other, context.Canceled, "parent")
			require.Equal(t, errParent, context.Cause(other))
			now, cancelNow := s.WithTimeout(context.Background(), 0)
			defer cancelNow()
			requireDone(t, now, context.DeadlineExceeded, "at once")
		})
	}
}

// Contexts that are pending at Close go on, as do those that are made after it,
// also under a clock that was given. Close does not hand them back.
func TestContext_PendingAtClose(t *testing.T) {
	type advance func(time.Duration)
	for name, test := range map[string]func(func(*timer.Scheduler, advance)){
		"virtual": func(f func(*timer.Scheduler, advance)) {
			s, clk := virtual(t)
			f(s, clk.Advance)
		},
		"bubble": func(f func(*timer.Scheduler, advance)) {
			synctest.Test(t, func(*testing.T) {
				f(timer.New(), func(d time.Duration) { time.Sleep(d); synctest.Wait() })
			})
		},
	} {
		test(func(s *timer.Scheduler, advance advance) {
			bg := context.Background()
			pending, cancelPending := s.WithTimeoutCause(bg, time.Second, errSlow)
			defer cancelPending()
			idle, cancelIdle := s.WithTimeout(bg, time.Second)
			defer cancelIdle()
			cancelled, cancel := s.WithTimeout(bg, time.Second)
			done := pending.Done()
			child, cancelChild := context.WithCancel(pending)
			defer cancelChild()
			cancelled.Done()
			start(t, s, time.Hour, func() {})
			require.Len(t, closeAll(s), 1, name)
			require.EqualValues(t, 1, s.Stats().HandedBack, name)
			require.EqualValues(t, 2, s.Stats().FellBack, name)
			after, cancelAfter := s.WithTimeout(bg, time.Second)
			defer cancelAfter()
			after.Done()
			require.EqualValues(t, 3, s.Stats().FellBack, name)
			balanced(t, s.Stats())
			cancel()
			requireDone(t, cancelled, context.Canceled, name)
			advance(time.Second - 1)
			requireNotDone(t, pending, name)
			requireNotDone(t, after, name)
			requireNotDone(t, idle, name)
			advance(1)
			requireClosed(t, done, name)
			requireDone(t, pending, context.DeadlineExceeded, name)
			require.Equal(t, errSlow, context.Cause(pending))
			requireDone(t, child, context.DeadlineExceeded, name)
			requireDone(t, after, context.DeadlineExceeded, name)
			requireDone(t, idle, context.DeadlineExceeded, name)
			require.Equal(t, context.Canceled, cancelled.Err())
		})
	}
}

func TestContext_AfterFunc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		defer s.Close()
		ran := make(chan struct{}, 1)
		f := func() { ran <- struct{}{} }

		ctx, cancel := s.WithTimeout(context.Background(), time.Hour)
		stop := context.AfterFunc(ctx, f)
		synctest.Wait()
		require.Empty(t, ran)
		cancel()
		synctest.Wait()
		require.Len(t, ran, 1, "after cancel")
		<-ran
		require.False(t, stop())

		context.AfterFunc(ctx, f)
		synctest.Wait()
		require.Len(t, ran, 1, "at once")
		<-ran

		ctx, cancel = s.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		context.AfterFunc(ctx, f)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Len(t, ran, 1, "after the timeout")
		<-ran

		ctx, cancel = s.WithTimeout(context.Background(), time.Hour)
		stop = context.AfterFunc(ctx, f)
		require.True(t, stop())
		require.False(t, stop())
		cancel()
		synctest.Wait()
		require.Empty(t, ran, "after stop")

		// The method itself, of a context that is done.
		stop = ctx.(interface{ AfterFunc(func()) func() bool }).AfterFunc(func() {
			ctx.Done() // no lock is held
			f()
		})
		require.False(t, stop())
		synctest.Wait()
		require.Len(t, ran, 1, "on a goroutine of its own")
		<-ran

		// cancel does not wait for f.
		ctx, cancel = s.WithTimeout(context.Background(), time.Hour)
		unbuffered := make(chan struct{})
		context.AfterFunc(ctx, func() { unbuffered <- struct{}{} })
		cancel()
		<-unbuffered
	})
}

// What is called when a context ends may itself cancel, stop and derive, up and
// down the tree.
func TestContext_ReentrantHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		defer s.Close()
		root, cancelRoot := s.WithTimeout(context.Background(), forever)
		parent, cancelParent := s.WithTimeout(root, forever/2)
		ctx, cancel := s.WithTimeout(parent, time.Second)
		sibling, cancelSibling := s.WithTimeout(parent, forever/3)
		var n atomic.Int64
		var mu sync.Mutex
		var stops []func() bool
		all := func() {
			mu.Lock()
			defer mu.Unlock()
			for _, stop := range stops {
				stop()
			}
			cancel()
			cancelSibling()
			cancelParent()
			late, cancelLate := s.WithTimeout(ctx, time.Second)
			context.AfterFunc(late, func() { n.Inc() })
			cancelLate()
			ctx.Done()
			n.Inc()
		}
		// The method itself calls its function on a goroutine of its own.
		hook := ctx.(interface {
			AfterFunc(func()) func() bool
		})
		var ran atomic.Bool
		var stop func() bool
		stop = hook.AfterFunc(func() {
			if stop() {
				t.Error("stop inside the function")
			}
			ran.Store(true)
			all()
		})
		var second func() bool
		first := hook.AfterFunc(func() { require.False(t, second()) })
		second = hook.AfterFunc(func() { require.False(t, first()) })
		mu.Lock()
		for _, c := range []context.Context{parent, sibling, root} {
			stops = append(stops, context.AfterFunc(c, all))
		}
		mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		require.True(t, ran.Load())
		require.Equal(t, context.DeadlineExceeded, ctx.Err())
		require.Equal(t, context.Canceled, sibling.Err())
		require.Equal(t, context.Canceled, parent.Err())
		require.NoError(t, root.Err())
		cancelRoot()
		synctest.Wait()
		require.Positive(t, n.Load())
		require.Zero(t, s.Len())
	})
}

func TestContext_InterlockedCancels(t *testing.T) {
	s, _ := virtual(t)
	parent, cancelParent := s.WithTimeout(context.Background(), forever)
	child, cancelChild := s.WithTimeout(parent, forever/2)
	go func() {
		<-parent.Done()
		cancelChild()
	}()
	cancelParent()
	<-child.Done()
}

func TestContext_SimultaneousCancels(t *testing.T) {
	s := timer.New()
	defer s.Close()
	for range 20 {
		root, cancel := context.WithCancel(context.Background())
		cancels := map[context.Context]context.CancelFunc{root: cancel}
		queue := []context.Context{root}
		for i := 0; len(cancels) < 100; i++ {
			parent := queue[0]
			queue = queue[1:]
			for k := range 4 {
				var ctx context.Context
				if (i+k)%3 == 0 {
					ctx, cancel = context.WithCancel(parent)
				} else {
					ctx, cancel = s.WithTimeout(parent, forever-time.Duration(i)*time.Second)
				}
				cancels[ctx] = cancel
				queue = append(queue, ctx)
			}
		}
		var wg sync.WaitGroup
		for _, cancel := range cancels {
			wg.Go(cancel)
		}
		for ctx := range cancels {
			<-ctx.Done()
			require.Equal(t, context.Canceled, ctx.Err())
		}
		wg.Wait()
		requireReleased(t, s)
	}
}

// Err that is not nil means that Done is closed (golang/go 75533).
func TestContext_ErrDoneRace(t *testing.T) {
	s, _ := virtual(t)
	for i := range 50 {
		parent, cancelParent := context.WithCancel(context.Background())
		ctx, cancel := s.WithTimeout(parent, forever)
		done := ctx.Done()
		if i%2 == 0 {
			go cancel()
		} else {
			go cancelParent()
		}
		for ctx.Err() == nil {
			runtime.Gosched()
		}
		requireClosed(t, done)
		cancel()
		cancelParent()
	}
}

func TestContext_ParentCancelledWhileItIsMade(t *testing.T) {
	s := timer.New()
	defer s.Close()
	for i := range 500 {
		parent, cancelParent := context.WithCancelCause(context.Background())
		if i%2 == 0 {
			ours, cancel := s.WithTimeout(parent, forever)
			defer cancel()
			parent = ours
		}
		go cancelParent(errParent)
		ctx, cancel := s.WithTimeout(parent, forever/2)
		<-ctx.Done()
		require.Equal(t, context.Canceled, ctx.Err())
		require.Equal(t, errParent, context.Cause(ctx))
		cancel()
	}
	requireReleased(t, s)
}

// Stacks of values, std contexts and ours, in any order.
func TestContext_Layers(t *testing.T) {
	rng := newRand(t)
	for round := range 60 {
		timeout := round%2 == 0
		s, clk := virtual(t)
		var values []*int
		var cancels []context.CancelFunc
		ctx := context.Background()
		for i := range 30 {
			var cancel context.CancelFunc
			switch rng.IntN(4) {
			case 0:
				v := new(int)
				ctx = context.WithValue(ctx, v, v)
				values = append(values, v)
				continue
			case 1:
				ctx, cancel = context.WithCancel(ctx)
			case 2:
				ctx, cancel = context.WithDeadline(ctx, epoch.Add(forever))
			case 3:
				ctx, cancel = s.WithTimeout(ctx, forever-time.Duration(i)*time.Second)
			}
			cancels = append(cancels, cancel)
		}
		ctx, cancel := s.WithTimeout(ctx, time.Minute)
		cancels = append(cancels, cancel)
		if len(cancels) < 3 {
			continue
		}
		check := func() {
			for _, v := range values {
				require.Same(t, v, ctx.Value(v))
			}
		}
		requireNotDone(t, ctx, "not yet")
		require.True(t, strings.HasPrefix(fmt.Sprint(ctx), "context."), "%v", ctx)
		check()
		want := context.Canceled
		if timeout {
			want = context.DeadlineExceeded
			clk.Advance(time.Minute)
		} else {
			cancels[rng.IntN(len(cancels))]()
		}
		<-ctx.Done()
		require.Equal(t, want, ctx.Err())
		check()
		for _, cancel := range cancels {
			cancel()
		}
		requireReleased(t, s)
		balanced(t, s.Stats())
	}
}

// Timeouts, cancels, parents' cancels, and the stopping of what waits for the
// context, all at once on the real clock. Each AfterFunc's function runs or was
// stopped, never both or neither; every context ends; no timer is left.
func TestContext_Stress(t *testing.T) {
	s := timer.New(timer.WithTick(time.Microsecond))
	defer s.Close()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 3))
			for range 500 {
				stressContext(t, s, rng)
			}
		})
	}
	wg.Wait()
	requireReleased(t, s)
	balanced(t, s.Stats())
}

func stressContext(t *testing.T, s *timer.Scheduler, rng *rand.Rand) {
	delay := func() time.Duration { return time.Duration(rng.IntN(200_000)) }
	root, cancelRoot := context.WithCancel(context.Background())
	defer cancelRoot()
	ctxs, cancels := []context.Context{root}, []context.CancelFunc{cancelRoot}
	var wg sync.WaitGroup
	var ran, stopped, hooks atomic.Int64
	for range 12 {
		parent := ctxs[rng.IntN(len(ctxs))]
		var ctx context.Context
		var cancel context.CancelFunc
		switch rng.IntN(5) {
		case 0:
			ctx, cancel = context.WithCancel(parent)
		case 1:
			ctx, cancel = s.WithTimeout(context.WithValue(parent, key1(1), 1), delay())
		default:
			ctx, cancel = s.WithTimeout(parent, delay())
		}
		ctxs, cancels = append(ctxs, ctx), append(cancels, cancel)
		hooks.Inc()
		stop := context.AfterFunc(ctx, func() { ran.Inc() })
		spin := rng.IntN(5000)
		switch rng.IntN(5) {
		case 0:
			wg.Go(func() {
				for ; spin > 0; spin-- {
				}
				if stop() {
					stopped.Inc()
				}
			})
		case 1:
			wg.Go(func() {
				for ; spin > 0; spin-- {
				}
				cancel()
			})
		case 2:
			wg.Go(func() { <-ctx.Done() })
		case 3:
			wg.Go(func() {
				for ctx.Err() == nil {
					runtime.Gosched()
				}
			})
		}
	}
	wg.Go(cancels[rng.IntN(len(cancels))])
	cancelRoot()
	wg.Wait()
	for _, ctx := range ctxs {
		<-ctx.Done()
		if err := ctx.Err(); err != context.Canceled && err != context.DeadlineExceeded {
			t.Errorf("Err: %v", err)
		}
		if context.Cause(ctx) == nil {
			t.Error("no cause")
		}
	}
	for ran.Load()+stopped.Load() < hooks.Load() {
		runtime.Gosched()
	}
	for _, cancel := range cancels {
		cancel()
	}
	if ran.Load()+stopped.Load() != hooks.Load() {
		t.Errorf("%d ran and %d were stopped, of %d", ran.Load(), stopped.Load(), hooks.Load())
	}
}

func TestContext_WithErrgroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		defer s.Close()
		ctx, cancel := s.WithTimeout(context.Background(), time.Second)
		defer cancel()
		begin := time.Now()
		g, groupCtx := errgroup.WithContext(ctx)
		for range 10 {
			g.Go(func() error {
				<-groupCtx.Done()
				return groupCtx.Err()
			})
		}
		require.ErrorIs(t, g.Wait(), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begin))

		ctx, cancel = s.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		g, groupCtx = errgroup.WithContext(ctx)
		inner, cancelInner := s.WithTimeout(groupCtx, time.Minute)
		defer cancelInner()
		g.Go(func() error { return errChild })
		require.ErrorIs(t, g.Wait(), errChild)
		<-inner.Done()
		require.Equal(t, errChild, context.Cause(inner))
		requireNotDone(t, ctx, "the group's failure is not the parent's")
	})
}

func TestContext_WithExec(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	s := timer.New()
	defer s.Close()
	ctx, cancel := s.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	err = exec.CommandContext(ctx, sleep, "600").Run()
	require.Error(t, err, "it was killed")
	require.Equal(t, context.DeadlineExceeded, ctx.Err())
}

// Under a virtual clock all that follows from a timeout has happened when Advance
// returns, in the same order each time.
func TestContext_OnAVirtualClock(t *testing.T) {
	clk := timertest.NewClock(epoch)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()
	var order []string
	for i := range 3 {
		ctx, cancel := s.WithTimeout(context.Background(), time.Duration(3-i)*time.Second)
		defer cancel()
		child, cancelChild := context.WithCancel(ctx)
		defer cancelChild()
		start(t, s, time.Duration(3-i)*time.Second, func() {
			order = append(order, fmt.Sprint(i, " at ", clk.Now().Sub(epoch), ": ", child.Err()))
		})
	}
	clk.Advance(time.Minute)
	const over = ": context deadline exceeded"
	require.Equal(t, []string{"2 at 1s" + over, "1 at 2s" + over, "0 at 3s" + over}, order)
}
