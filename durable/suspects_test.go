package durable_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/jobs"
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
		require.Equal(t, durable.DefaultMaxCrashes, deaths)
		require.Equal(t, durable.DefaultMaxCrashes, began["poison"])
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 1, st.Dead)
		require.EqualValues(t, 50, st.Done)
		require.Zero(t, st.Pending+st.Running)
		require.Equal(t, durable.Dead, becomes(t, c, "poison", durable.Dead).State)
	})
}

// The process is killed five times while 20 tasks run. None of the tasks is the cause.
func TestWorker_KillsBuryNobody(t *testing.T) {
	withShards(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		scheduleMany(t, c, "h", 20, durable.After(0))
		kills := 5
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
		require.Equal(t, 5, deaths)
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, st.Dead)
		require.EqualValues(t, 20, st.Done)
	})
}

// After one crash or two, tasks run as before: all at the same time.
func TestWorker_InterruptedTasksRunSideBySide(t *testing.T) {
	for crashes := 1; crashes <= 2; crashes++ {
		withShards(t, func(t *testing.T, mem *memstore.Store) {
			c := durable.New(mem, quiet)
			scheduleMany(t, c, "h", 100, durable.After(0))
			for range crashes {
				crash(t, mem, 100)
			}
			w := durable.NewWorker(c, durable.WithConcurrency(100))
			var tasks load
			w.Handle("h", tasks.handler(time.Second))
			start(t, w)
			time.Sleep(3 * time.Second)
			synctest.Wait()
			require.Equal(t, 100, tasks.done)
		})
	}
}

// A worker begins with one suspect, and each that returns allows one more. Other tasks run
// beside them.
func TestWorker_SuspectsRunMoreAndMore(t *testing.T) {
	withShards(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		scheduleMany(t, c, "h", 31, durable.After(0))
		for range 3 {
			crash(t, mem, 31)
		}
		scheduleMany(t, c, "other", 10, durable.After(0))
		w := durable.NewWorker(c, durable.WithConcurrency(64))
		var suspects, others load
		w.Handle("h", suspects.handler(time.Second))
		w.Handle("other", others.handler(10*time.Second))
		start(t, w)
		defer time.Sleep(10 * time.Second)
		for _, most := range []int{1, 2, 4, 8, 16} {
			time.Sleep(900 * time.Millisecond)
			synctest.Wait()
			got, _ := suspects.seen()
			require.LessOrEqual(t, got, most)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		most, done := suspects.seen()
		require.Equal(t, 31, done)
		require.Greater(t, most, 8)
		require.Equal(t, 10, others.started())
	})
}

// Suspects that end without their handler, here because their last attempt has crashed, allow no
// other: only a handler that returns does.
func TestWorker_SuspectsThatDoNotRunAllowNoOther(t *testing.T) {
	withShards(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet, durable.WithSchedule("s", jobs.Every(time.Hour)))
		for i := range 10 {
			schedule(t, c, durable.Task{Key: fmt.Sprint("last attempt ", i), Schedule: "s", MaxAttempts: 3}, durable.After(0))
		}
		scheduleMany(t, c, "h", 10, durable.After(0))
		for range 3 {
			crash(t, mem, 20)
		}
		w := durable.NewWorker(c, durable.WithConcurrency(64))
		var mu sync.Mutex
		running, returned := 0, 0
		w.Handle("h", func(context.Context, durable.Delivery) error {
			mu.Lock()
			running++
			assert.LessOrEqual(t, running, 1+returned)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			running--
			returned++
			return nil
		})
		start(t, w)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Equal(t, 10, returned)
	})
}

// A suspect whose next crash makes it a dead letter runs while no other suspect runs, also
// if others keep coming, but beside all other tasks.
func TestWorker_TheLastSuspectIsTheOnlyOne(t *testing.T) {
	withShards(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		schedule(t, c, durable.Task{Key: "last"}, durable.After(0))
		for range 4 {
			crash(t, mem, 1)
		}
		scheduleMany(t, c, "h", 10, durable.After(0))
		for range 3 {
			_, err := c.Reschedule(ctx, "last", durable.After(time.Hour))
			require.NoError(t, err)
			crash(t, mem, 10)
		}
		_, err := c.Reschedule(ctx, "last", durable.After(2500*time.Millisecond))
		require.NoError(t, err)
		scheduleMany(t, c, "other", 5, durable.After(0))
		w := durable.NewWorker(c, durable.WithLease(time.Minute))
		var mu sync.Mutex
		running, beside, lasts := make(map[string]bool), 0, 0
		w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
			mu.Lock()
			running[d.Key] = true
			if running["last"] {
				lasts++
				beside = max(beside, len(running)-1)
			}
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			delete(running, d.Key)
			return nil
		})
		var others load
		w.Handle("other", others.handler(time.Minute))
		start(t, w)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 1, lasts)
		require.Zero(t, beside)
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, st.Pending+st.Running+st.Dead)
	})
}

// crash claims the due tasks of the handler h, which must be as many as given, and lets their
// leases expire.
func crash(t *testing.T, mem *memstore.Store, tasks int) {
	t.Helper()
	crashed := 0
	for i := range 2 {
		for shard := range mem.Shards() {
			n := store.MaxClaim * (1 - i)
			r := store.Round{Lease: time.Second, MaxCrashes: durable.DefaultMaxCrashes,
				Claim: store.Claim{Asked: true, Max: n, Suspects: n, OnlySuspect: true, Handlers: []string{"h"}, Schedules: []string{"s"}}}
			a, err := mem.Do(ctx, shard, store.Stamp{Sender: fmt.Sprint("crash", time.Now().UnixNano(), shard, i), Number: 1}, r)
			require.NoError(t, err)
			crashed += len(a.Tasks)
		}
		time.Sleep(time.Second + time.Millisecond)
	}
	require.Equal(t, tasks, crashed)
}
