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
	"github.com/tickless/tickless/durable/store"
)

// A mortal is a process that can be killed. After that, its commands do not arrive.
type mortal struct {
	*memstore.Store
	killed context.Context
	kill   context.CancelFunc
}

func newMortal(mem *memstore.Store) *mortal {
	ctx, cancel := context.WithCancel(context.Background())
	return &mortal{mem, ctx, cancel}
}

func (m *mortal) Do(ctx context.Context, shard int, s store.Stamp, r store.Round) (store.Answer, error) {
	if m.killed.Err() != nil {
		return store.Answer{}, store.ErrClosed
	}
	a, err := m.Store.Do(ctx, shard, s, r)
	if m.killed.Err() != nil { // killed before the answer came
		return store.Answer{}, store.ErrClosed
	}
	return a, err
}

func (m *mortal) Wait(ctx context.Context, shards []int, wake func(int)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.killed, cancel)()
	err := m.Store.Wait(ctx, shards, wake)
	if m.killed.Err() != nil {
		return store.ErrClosed
	}
	return err
}

// runUntilKilled runs one worker after the other. Each runs until its process is
// killed. It returns how many were killed.
func runUntilKilled(t *testing.T, mem *memstore.Store, until time.Time, handle func(p *mortal) durable.Handler) (deaths int) {
	for time.Now().Before(until) {
		p := newMortal(mem)
		w := durable.NewWorker(durable.New(p, quiet), durable.WithLease(time.Second), durable.WithConcurrency(64))
		w.Handle("h", handle(p))
		ended := make(chan error, 1)
		go func() { ended <- w.Run(context.Background()) }()
		select {
		case <-p.killed.Done():
			deaths++
			<-ended
		case <-time.After(time.Until(until)):
			require.NoError(t, w.Close())
			<-ended
		}
	}
	return deaths
}

// 50 harmless tasks run beside a poison task. The poison task kills its process 10 ms
// after it starts.
func TestWorker_PoisonDoesNotBuryItsNeighbours(t *testing.T) {
	withShards(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		scheduleMany(t, c, "h", 50, durable.After(0))
		schedule(t, c, durable.Task{Key: "poison"}, durable.After(0))
		var mu sync.Mutex
		began := make(map[string]int)
		deaths := runUntilKilled(t, mem, time.Now().Add(time.Minute), func(p *mortal) durable.Handler {
			return func(ctx context.Context, d durable.Delivery) error {
				mu.Lock()
				began[d.Key]++
				mu.Unlock()
				if d.Key == "poison" {
					time.Sleep(10 * time.Millisecond)
					p.kill()
				}
				time.Sleep(100 * time.Millisecond)
				return nil
			}
		})
		synctest.Wait()
		require.Equal(t, 3, deaths)
		require.Equal(t, 3, began["poison"])
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 1, st.Dead)
		require.EqualValues(t, 50, st.Done)
		require.Zero(t, st.Pending+st.Running)
		require.Equal(t, durable.Dead, becomes(t, c, "poison", durable.Dead).State)
	})
}

// The process is killed three times while 20 tasks run. None of the tasks is the cause.
func TestWorker_KillsBuryNobody(t *testing.T) {
	withShards(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		scheduleMany(t, c, "h", 20, durable.After(0))
		kills := 3
		deaths := runUntilKilled(t, mem, time.Now().Add(2*time.Minute), func(p *mortal) durable.Handler {
			if kills > 0 {
				kills--
				time.AfterFunc(1700*time.Millisecond, p.kill)
			}
			return func(ctx context.Context, d durable.Delivery) error {
				time.Sleep(2 * time.Second)
				return nil
			}
		})
		synctest.Wait()
		require.Equal(t, 3, deaths)
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, st.Dead)
		require.EqualValues(t, 20, st.Done)
	})
}

// A worker runs a suspect alone if its next crash would make it a dead letter.
func TestWorker_RunsASuspectAloneBeforeItIsBuried(t *testing.T) {
	withShards(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		schedule(t, c, durable.Task{Key: "suspect"}, durable.After(0))
		for range 2 { // it crashes
			a := crash(t, mem)
			require.Len(t, a, 1)
		}
		scheduleMany(t, c, "h", 10, durable.After(0))
		w := durable.NewWorker(c)
		var mu sync.Mutex
		running, beside := make(map[string]bool), 0
		w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
			mu.Lock()
			running[d.Key] = true
			if running["suspect"] {
				beside = max(beside, len(running)-1)
			}
			mu.Unlock()
			time.Sleep(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			delete(running, d.Key)
			return nil
		})
		start(t, w)
		time.Sleep(time.Second)
		scheduleMany(t, c, "h", 5, durable.After(90*time.Second)) // meanwhile
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		require.Zero(t, beside)
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, st.Pending+st.Running+st.Dead)
	})
}

// The end of a suspect wakes the worker for the next suspect, whether or not that one
// must run alone.
func TestWorker_TheNextSuspectComesAtOnce(t *testing.T) {
	for crashes := 1; crashes <= 2; crashes++ {
		withShards(t, func(t *testing.T, mem *memstore.Store) {
			c := durable.New(mem, quiet)
			scheduleMany(t, c, "h", 10, durable.After(0))
			for range crashes {
				require.Len(t, crash(t, mem), 10)
			}
			w := durable.NewWorker(c, durable.WithLease(time.Hour))
			var suspects load
			w.Handle("h", suspects.handler(time.Second))
			start(t, w)
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Equal(t, 10, suspects.done)
			require.Equal(t, 1, suspects.most)
		})
	}
}

func TestWorker_RunsOneSuspectAtATimeBesideOthers(t *testing.T) {
	withShards(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		scheduleMany(t, c, "h", 10, durable.After(0))
		require.Len(t, crash(t, mem), 10)
		scheduleMany(t, c, "other", 10, durable.After(0))
		w := durable.NewWorker(c)
		var suspects, others load
		w.Handle("h", suspects.handler(time.Second))
		w.Handle("other", others.handler(time.Minute))
		start(t, w)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Equal(t, 10, suspects.done)
		require.Equal(t, 1, suspects.most)
		require.Equal(t, 10, others.started())
	})
}

// A worker that shuts down hands a suspect that waits to be alone back to the store.
func TestShutdown_WhileASuspectWaits(t *testing.T) {
	withShards(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		schedule(t, c, durable.Task{Key: "suspect"}, durable.After(0))
		for range 2 {
			crash(t, mem)
		}
		w := durable.NewWorker(c)
		w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
			require.NotEqual(t, "suspect", d.Key)
			time.Sleep(time.Minute)
			return nil
		})
		schedule(t, c, durable.Task{Key: "other"}, durable.After(0))
		_, err := c.Reschedule(ctx, "suspect", durable.After(500*time.Millisecond))
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		time.Sleep(time.Second)
		require.NoError(t, w.Shutdown(ctx))
		require.NoError(t, <-ended)
		info := becomes(t, c, "suspect", durable.Pending)
		require.Equal(t, 2, info.Crashes)
		require.Equal(t, 2, info.Attempts)
	})
}

// crash claims the due tasks and lets their leases expire.
func crash(t *testing.T, mem *memstore.Store) (got []store.Claimed) {
	t.Helper()
	for shard := range mem.Shards() {
		for i := range 2 {
			r := store.Round{Lease: time.Second, MaxCrashes: 3, Claim: store.Claim{Asked: true, Max: 10 * (1 - i), Handlers: []string{"h"}}}
			a, err := mem.Do(ctx, shard, store.Stamp{Sender: fmt.Sprint("crash", time.Now().UnixNano(), i), Number: 1}, r)
			require.NoError(t, err)
			got = append(got, a.Tasks...)
			if i == 0 && len(a.Tasks) > 0 {
				time.Sleep(time.Second + time.Millisecond)
			}
		}
	}
	return got
}
