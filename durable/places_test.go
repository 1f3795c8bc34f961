package durable_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// withShards runs a test in bubbles with stores of one and of several shards.
func withShards(t *testing.T, f func(t *testing.T, mem *memstore.Store)) {
	for _, shards := range []int{1, 4} {
		t.Run(fmt.Sprint("shards=", shards), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := memstore.New(memstore.WithShards(shards))
				f(t, mem)
			})
		})
	}
}

func scheduleMany(t *testing.T, c *durable.Client, handler string, n int, w durable.When) {
	t.Helper()
	items := make([]durable.Item, n)
	for i := range items {
		items[i] = durable.Item{Task: durable.Task{Key: fmt.Sprint(handler, " ", i), Handler: handler}, When: w}
	}
	_, err := c.ScheduleBatch(ctx, items)
	require.NoError(t, err)
}

// A load is a handler whose tasks take some time, with counters.
type load struct {
	mu                  sync.Mutex
	running, most, done int
	begun               []time.Time
}

// seen returns how many handlers ran at a time at most, and how many have returned.
func (l *load) seen() (most, done int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.most, l.done
}

func (l *load) handler(took time.Duration) durable.Handler {
	return func(ctx context.Context, _ durable.Delivery) error {
		l.mu.Lock()
		l.running++
		l.most = max(l.most, l.running)
		l.begun = append(l.begun, time.Now())
		l.mu.Unlock()
		time.Sleep(took)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.running--
		l.done++
		return nil
	}
}

func (l *load) started() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.begun)
}

// Of eight places, 32 slow tasks of 2 s each leave the spare two to quick ones, which are
// due after 0.1 s. The quick ones run one by one: the second place is for a third handler.
func TestWorker_ASlowHandlerDoesNotStarveOthers(t *testing.T) {
	for name, opts := range map[string][]durable.HandlerOption{
		"limited":    {durable.WithHandlerConcurrency(6)},
		"by default": nil,
	} {
		t.Run(name, func(t *testing.T) {
			withShards(t, func(t *testing.T, mem *memstore.Store) {
				c := durable.New(mem, quiet)
				w := durable.NewWorker(c, durable.WithConcurrency(8))
				var slow, quick, third load
				w.Handle("slow", slow.handler(2*time.Second), opts...)
				w.Handle("quick", quick.handler(10*time.Millisecond))
				w.Handle("third", third.handler(time.Second))
				began := time.Now()
				scheduleMany(t, c, "slow", 32, durable.After(0))
				scheduleMany(t, c, "quick", 20, durable.After(100*time.Millisecond))
				scheduleMany(t, c, "third", 1, durable.After(100*time.Millisecond))
				start(t, w)
				time.Sleep(20 * time.Second)
				synctest.Wait()
				require.Equal(t, 32, slow.done)
				require.Equal(t, 6, slow.most)
				require.Equal(t, 20, quick.done)
				require.Less(t, quick.begun[19].Sub(began), 500*time.Millisecond)
				require.Equal(t, 100*time.Millisecond, third.begun[0].Sub(began))
				st := w.Stats()
				require.Zero(t, st.Released)
				require.LessOrEqual(t, st.Claims, int64(120))
			})
		})
	}
}

// A Worker with one handler uses all its places for it.
func TestWorker_OneHandlerUsesAllPlaces(t *testing.T) {
	withShards(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c, durable.WithConcurrency(8))
		var only load
		w.Handle("h", only.handler(time.Second))
		scheduleMany(t, c, "h", 80, durable.After(0))
		start(t, w)
		time.Sleep(10*time.Second + 1)
		synctest.Wait()
		require.Equal(t, 80, only.done)
		require.Equal(t, 8, only.most)
	})
}

// Tasks beyond a handler's limit do not cause claims.
func TestWorker_ALimitedHandlerCostsNoClaims(t *testing.T) {
	withShards(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c, durable.WithConcurrency(64))
		var limited, other load
		w.Handle("limited", limited.handler(10*time.Millisecond), durable.WithHandlerConcurrency(6))
		w.Handle("other", other.handler(time.Millisecond))
		const n = 2000
		scheduleMany(t, c, "limited", n, durable.After(0))
		start(t, w)
		scheduleMany(t, c, "other", 100, durable.After(50*time.Millisecond))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		require.Equal(t, n, limited.done)
		require.Equal(t, 6, limited.most)
		require.Equal(t, 100, other.done)
		require.Less(t, limited.begun[n-1].Sub(limited.begun[0]), 3500*time.Millisecond, "6 at a time")
		st := w.Stats()
		t.Log(st.Claims, st.Empty, st.Wakeups)
		require.Zero(t, st.Released)
		require.LessOrEqual(t, st.Claims, int64(n+n/20))
		require.LessOrEqual(t, st.Empty, int64(n/20))
	})
}

// The oldest tasks come first, whatever their handlers.
func TestWorker_TheOldestTasksFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // each shard has an order of its own
		mem := memstore.New()
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c, durable.WithConcurrency(8))
		var a, b load
		w.Handle("a", a.handler(time.Second))
		w.Handle("b", b.handler(time.Second))
		scheduleMany(t, c, "a", 60, durable.After(0))
		time.Sleep(time.Millisecond)
		scheduleMany(t, c, "b", 60, durable.After(0))
		start(t, w)
		time.Sleep(6*time.Second + 1)
		synctest.Wait()
		require.InDelta(t, 6*7, a.started(), 8)
		require.InDelta(t, 7, b.started(), 4, "b has one spare place")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Equal(t, 120, a.done+b.done)
		require.Zero(t, w.Stats().Running, "all places are free")
	})
}

func TestWorker_Rate(t *testing.T) {
	withShards(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		var l load
		w.Handle("h", l.handler(0), durable.WithRate(50))
		began := time.Now()
		scheduleMany(t, c, "h", 200, durable.After(0))
		start(t, w)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 200, l.done)
		for i, at := range l.begun {
			require.GreaterOrEqual(t, at.Sub(began).Seconds(), float64(i-5)/50, "task %d", i)
			require.LessOrEqual(t, at.Sub(began).Seconds(), float64(i+5)/50, "task %d", i)
		}
		st := w.Stats()
		t.Log(st.Claims, st.Empty)
		require.LessOrEqual(t, st.Claims, int64(240))
	})
}
