package deadline_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	errParent = errors.New("the parent's cause")
	errChild  = errors.New("the child's cause")
	errSlow   = errors.New("too slow")
)

type key1 int

// newRand returns a generator with the seed TICKLESS_SEED, or with a random seed. It
// logs the seed.
func newRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	if v := os.Getenv("TICKLESS_SEED"); v != "" {
		var err error
		seed, err = strconv.ParseUint(v, 10, 64)
		require.NoError(t, err, "TICKLESS_SEED")
	}
	t.Logf("TICKLESS_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// wrapped hides the type of a context.
type wrapped struct{ context.Context }

// registering is a type of context that only the tests know, with an AfterFunc method.
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

// unknown is a type of context that only the tests know, without an AfterFunc method.
// Its methods take a lock.
type unknown struct {
	context.Context // Background: provides Deadline and Value
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

func (c *unknown) cancel(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.done)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func requireClosed(t testing.TB, c <-chan struct{}, msg ...any) {
	t.Helper()
	require.True(t, isClosed(c), msg...)
}

// requireEnded requires that the context has ended, with an error and a cause.
func requireEnded(t testing.TB, ctx context.Context, err, cause error, msg ...any) {
	t.Helper()
	require.Equal(t, err, ctx.Err(), msg...)
	require.Equal(t, cause, context.Cause(ctx), msg...)
	require.True(t, isClosed(ctx.Done()), msg...)
}

// heapInUse returns the size of the heap in bytes, without garbage.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // frees what the first collection has finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
