package timer_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// wrapped hides what kind of context it is around.
type wrapped struct{ context.Context }

// ownDone is around a context, but has another Done.
type ownDone struct {
	context.Context
	done chan struct{}
}

func (c *ownDone) Done() <-chan struct{} { return c.done }

// registering is a context of its own that has an AfterFunc method.
type registering struct {
	mu    sync.Mutex
	funcs map[*byte]func()
	done  chan struct{}
	err   error
}

func newRegistering() *registering {
	return &registering{funcs: map[*byte]func(){}, done: make(chan struct{})}
}

func (c *registering) Deadline() (time.Time, bool) { return time.Time{}, false }

func (c *registering) Done() <-chan struct{} { return c.done }

func (c *registering) Value(any) any { return nil }

func (c *registering) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *registering) AfterFunc(f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := new(byte)
	c.funcs[key] = f
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, ok := c.funcs[key]
		delete(c.funcs, key)
		return ok
	}
}

func (c *registering) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = context.Canceled
	close(c.done)
	for _, f := range c.funcs {
		go f()
	}
	c.funcs = nil
}

// unknown is a context of its own without one.
type unknown struct {
	context.Context // Background, for Deadline and Value
	mu              sync.Mutex
	done            chan struct{}
	err             error
}

func newUnknown() *unknown {
	return &unknown{Context: context.Background(), done: make(chan struct{})}
}

func (c *unknown) Done() <-chan struct{} { return c.done }

func (c *unknown) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *unknown) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = context.Canceled
	close(c.done)
}

func isDone(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

func requireDone(t testing.TB, ctx context.Context, err error, msg string) {
	t.Helper()
	require.True(t, isDone(ctx), "%s: not done", msg)
	require.Equal(t, err, ctx.Err(), msg)
}

func requireNotDone(t testing.TB, ctx context.Context, msg string) {
	t.Helper()
	require.NotNil(t, ctx.Done(), msg)
	require.False(t, isDone(ctx), "%s: done", msg)
	require.NoError(t, ctx.Err(), msg)
	require.NoError(t, context.Cause(ctx), msg)
}

// requireReleased requires that no timer is left. Of two who end a context at the
// same time, the one that comes second does not wait for the other.
func requireReleased(t testing.TB, s *timer.Scheduler) {
	t.Helper()
	require.Eventually(t, func() bool { return s.Len() == 0 }, time.Minute, 100*time.Microsecond)
}

func requireClosed(t testing.TB, c <-chan struct{}, msg ...any) {
	t.Helper()
	select {
	case <-c:
	default:
		require.Fail(t, "Done is not closed", msg...)
	}
}

type key1 int

type key2 int

// requireUnregistered requires that nothing waits for c, or will not for long.
func requireUnregistered(t testing.TB, c *registering) {
	t.Helper()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.funcs) == 0
	}, time.Minute, 100*time.Microsecond)
}

// slowlyRegistering calls then once a function has been registered.
type slowlyRegistering struct {
	*registering
	then func()
}

func (c *slowlyRegistering) AfterFunc(f func()) func() bool {
	defer c.then()
	return c.registering.AfterFunc(f)
}

// requireGoroutines requires that there are no more goroutines than before. Some
// from before may have ended meanwhile, and those that the alarm and the timers of other
// tests have started come and go.
func requireGoroutines(t testing.TB, before int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}
