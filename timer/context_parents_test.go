package timer_test

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
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// unhashable is a context that is no key of a map and cannot be compared.
type unhashable struct {
	*registering
	_ []int
}

// All contexts under a parent of another kind share one registration with it, while
// there are any, whatever the parent's type.
func TestContext_OneRegistrationWithAParent(t *testing.T) {
	s, _ := virtual(t)
	inner := newRegistering()
	for _, parent := range []context.Context{inner, unhashable{inner, nil}, &unhashable{inner, nil}} {
		for range 3 {
			var cancels []context.CancelFunc
			for range 100 {
				_, cancel := s.WithTimeout(parent, time.Hour)
				cancels = append(cancels, cancel)
				require.Len(t, inner.funcs, 1)
			}
			_, cancel := s.WithTimeout(inner, time.Hour)
			require.Len(t, inner.funcs, 1, "known by its Done channel")
			cancel()
			for i, cancel := range cancels {
				require.Len(t, inner.funcs, 1, "%d", i)
				cancel()
			}
			require.Empty(t, inner.funcs)
		}
	}
}

// One goroutine tells all contexts under a parent that it is done.
func TestContext_ParentsStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		defer s.Close()
		parent, cancelParent := context.WithCancelCause(context.Background())
		const n = 10_000
		ctxs := make([]context.Context, n)
		for i := range ctxs {
			ctx, cancel := s.WithTimeoutCause(parent, time.Hour, errSlow)
			defer cancel()
			ctx.Done()
			ctxs[i] = ctx
		}
		require.Equal(t, n, s.Len())
		before := runtime.NumGoroutine()
		cancelParent(errParent)
		require.Less(t, runtime.NumGoroutine(), before+n/100, "not a goroutine for each")
		synctest.Wait()
		// Goroutines of other tests, outside the bubble, come and go.
		for tries := 0; runtime.NumGoroutine() > before; tries++ {
			require.Less(t, tries, 100_000)
			runtime.Gosched()
		}
		require.Zero(t, s.Len())
		for _, ctx := range ctxs {
			requireDone(t, ctx, context.Canceled, "storm")
			require.Equal(t, errParent, context.Cause(ctx))
		}
	})
}

// A parent that is done is asked for its error once for all contexts under it, if
// it is one of package context's; and each parent of another kind is asked for its
// own, though they have a Done channel in common.
func TestContext_ParentsWithOneChannel(t *testing.T) {
	s, _ := virtual(t)
	inner := newUnknown()
	first := &failing{Context: inner, err: errParent}
	second := &failing{Context: inner, err: errChild}
	var ctxs []context.Context
	for range 10 {
		for _, parent := range []context.Context{first, second, inner} {
			ctx, cancel := s.WithTimeout(parent, time.Hour)
			defer cancel()
			ctxs = append(ctxs, ctx)
		}
	}
	inner.cancel()
	for i, ctx := range ctxs {
		<-ctx.Done()
		require.Equal(t, []error{errParent, errChild, context.Canceled}[i%3], ctx.Err())
	}
}

// veiled is a context that has its values from elsewhere, and perhaps an error of its own:
// what it is around is not seen.
type veiled struct{ context.Context }

func (veiled) Value(any) any { return nil }

// Contexts wait for one channel of package context's, which some of them know for what it
// is and others do not.
func TestContext_ParentsWithOneChannelOfTheStandardLibrary(t *testing.T) {
	s, _ := virtual(t)
	for round := range 200 {
		std, cancel := context.WithCancelCause(context.Background())
		parents := []context.Context{veiled{std}, valued{std}, veiled{&failing{Context: std, err: errParent}}}
		if round%2 == 0 {
			slices.Reverse(parents)
		}
		var ctxs []context.Context
		for _, parent := range parents {
			ctx, cancel := s.WithTimeout(parent, time.Hour)
			defer cancel()
			ctx.Done()
			ctxs = append(ctxs, ctx)
		}
		cancel(errChild)
		known := ctxs[1] // it need not be told
		require.Equal(t, context.Canceled, known.Err())
		require.Equal(t, errChild, context.Cause(known))
		for i, ctx := range ctxs {
			<-ctx.Done()
			require.Equal(t, parents[i].Err(), ctx.Err(), "%d", i)
		}
	}
}

// valued is a context around one of package context's, as packages have them that add
// methods.
type valued struct{ context.Context }

// Done, again and again, of a context with a cause that is cancelled meanwhile.
func TestContext_CancelledWhileItBeginsToWait(t *testing.T) {
	s, _ := virtual(t)
	for range 2000 {
		ctx, cancel := s.WithTimeoutCause(context.Background(), time.Hour, errParent)
		var wg sync.WaitGroup
		wg.Go(func() { ctx.Done() })
		wg.Go(func() {
			cancel()
			requireClosed(t, ctx.Done())
		})
		wg.Go(func() { ctx.Done() })
		wg.Wait()
		requireClosed(t, ctx.Done())
	}
}

// The cause may be what is asked first of a context that is over.
func TestContext_CauseIsAskedFirst(t *testing.T) {
	s, clk := virtual(t)
	timedOut, cancel := s.WithTimeoutCause(context.Background(), time.Second, errParent)
	defer cancel()
	std, cancelStd := context.WithCancelCause(context.Background())
	under, cancelUnder := s.WithTimeout(std, time.Hour)
	defer cancelUnder()
	clk.Advance(time.Minute)
	cancelStd(errChild)
	require.Equal(t, errParent, context.Cause(timedOut))
	require.Equal(t, errChild, context.Cause(under))
}

// Shutdown waits for what a context that expired has to call of its parent.
func TestContext_ShutdownWaitsForTheParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		parent := &stuck{Context: context.Background(), lock: make(chan struct{}, 1), done: make(chan struct{})}
		ctx, cancel := s.WithTimeout(parent, time.Second)
		defer cancel()
		ctx.Done()
		parent.lock <- struct{}{}
		time.Sleep(2 * time.Second)
		short, cancelShort := context.WithTimeout(context.Background(), time.Second)
		defer cancelShort()
		require.Equal(t, context.DeadlineExceeded, s.Shutdown(short))
		<-parent.lock
		require.NoError(t, s.Shutdown(context.Background()))
	})
}

// failing is a context with an error of its own.
type failing struct {
	context.Context
	err error
}

func (c *failing) Err() error {
	if c.Context.Err() == nil {
		return nil
	}
	return c.err
}

// stuck is a parent whose methods wait for a lock: a channel, by which a bubble
// sees that they wait.
type stuck struct {
	context.Context
	lock chan struct{}
	done chan struct{}
}

func (c *stuck) Done() <-chan struct{} { return c.done }

func (c *stuck) Err() error {
	c.lock <- struct{}{}
	<-c.lock
	return context.Canceled
}

func (c *stuck) AfterFunc(func()) func() bool {
	return func() bool {
		c.lock <- struct{}{}
		<-c.lock
		return true
	}
}

// What contexts call of others when they expire holds up no other timer.
func TestContext_ExpiryWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		begin := time.Now()
		parent := &stuck{Context: context.Background(), lock: make(chan struct{}, 1), done: make(chan struct{})}
		ctx, cancel := s.WithTimeout(parent, time.Second)
		defer cancel()
		done := ctx.Done()
		// What is registered with it runs where it may block.
		blocked := make(chan struct{})
		context.AfterFunc(ctx, func() { <-blocked })
		ctx.(interface{ AfterFunc(func()) func() bool }).AfterFunc(func() { <-blocked })
		child, cancelChild := context.WithCancel(ctx)
		defer cancelChild()
		ours, cancelOurs := s.WithTimeout(child, time.Hour)
		defer cancelOurs()
		oursDone := ours.Done()
		var at atomic.Duration
		start(t, s, 2*time.Second, func() { at.Store(time.Since(begin)) })

		parent.lock <- struct{}{}
		time.Sleep(3 * time.Second)
		requireClosed(t, done)
		require.Equal(t, context.DeadlineExceeded, ctx.Err())
		requireClosed(t, oursDone)
		require.Equal(t, 2*time.Second, at.Load())
		<-parent.lock
		close(blocked)
		require.NoError(t, s.Shutdown(context.Background()))
	})
}

// Shutdown waits until all has been told of contexts that have expired.
func TestContext_ShutdownAfterExpiry(t *testing.T) {
	s := timer.New()
	ctx, cancel := s.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	var children []context.Context
	for range 10_000 {
		child, cancelChild := context.WithCancel(ctx)
		defer cancelChild()
		ours, cancelOurs := s.WithTimeout(ctx, time.Hour)
		defer cancelOurs()
		ours.Done()
		children = append(children, child, ours)
	}
	<-ctx.Done()
	require.NoError(t, s.Shutdown(context.Background()))
	for _, c := range children {
		requireDone(t, c, context.DeadlineExceeded, "child")
	}
}

// A context is done when Advance returns, whose callbacks run inline.
func TestContext_InlineExecutorThatWasGiven(t *testing.T) {
	clk := timertest.NewClock(epoch)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()
	for range 100 {
		ctx, cancel := s.WithTimeout(context.Background(), time.Second)
		clk.Advance(time.Second)
		require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
		cancel()
	}
}

// lockedContext is a context whose methods take a lock that its owner may hold.
type lockedContext struct {
	context.Context
	mu   sync.Mutex
	err  error
	done chan struct{}
}

func (c *lockedContext) Done() <-chan struct{} { return c.done }

func (c *lockedContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// A context calls nothing of a parent's that is neither ours nor package context's,
// neither while that is pending nor once it is done, but on a goroutine of its own:
// whoever asks may hold what its methods wait for.
func TestContext_CallsNothingOfTheParents(t *testing.T) {
	s := timer.New()
	defer s.Close()
	parent := &lockedContext{Context: context.Background(), done: make(chan struct{})}
	ctx, cancel := s.WithTimeout(parent, time.Hour)
	defer cancel()
	child, cancelChild := s.WithTimeout(ctx, time.Minute)
	defer cancelChild()
	other, cancelOther := s.WithTimeout(parent, time.Hour)
	parent.mu.Lock()
	done := ctx.Done()
	for range 100 {
		require.NoError(t, ctx.Err())
		require.NoError(t, child.Err())
	}
	parent.err = context.Canceled
	close(parent.done)
	for range 100 {
		ctx.Err()
		ctx.Done()
		child.Err()
		child.Done()
	}
	cancelOther()
	require.ErrorIs(t, other.Err(), context.Canceled)
	parent.mu.Unlock()
	<-done
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	<-child.Done()
}

func TestContext_StringTellsTheSchedulersTime(t *testing.T) {
	s, _ := virtual(t)
	ctx, cancel := s.WithTimeout(context.Background(), time.Second)
	defer cancel()
	require.Contains(t, ctx.(interface{ String() string }).String(), "[1s]")
}
