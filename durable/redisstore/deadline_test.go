package redisstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
)

// frozen returns a server for a test to freeze, and a client that is connected to the
// server.
func frozen(t *testing.T) (*redistest.Server, *client) {
	t.Helper()
	s := redistest.Start(t)
	// With these options go-redis itself waits for ever.
	r := s.Client(func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = -1, -1 })
	t.Cleanup(func() { r.Close() })
	c := newClient(r, WithShards(4))
	for i := range 4 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		_, err := c.Schedule(ctx, durable.Task{Key: fmt.Sprint("before", i), Handler: "h"}, durable.After(time.Hour))
		cancel()
		require.NoError(t, err)
	}
	return s, c
}

// Every method returns when its context ends, even if the server is frozen. The server
// does not carry out a command after the command's deadline.
func TestContext_EndsTheCall(t *testing.T) {
	s, c := frozen(t)
	other := newClient(c.s.client, WithShards(4))
	_, err := other.Schedule(context.Background(), durable.Task{Key: "other", Handler: "h"}, durable.After(time.Hour))
	require.NoError(t, err)
	s.Suspend()
	ago := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), 100*time.Millisecond)
	}
	task := durable.Task{Key: "k", Handler: "h"}
	for name, call := range map[string]func(ctx context.Context) error{
		"Schedule": func(ctx context.Context) error { _, err := c.Schedule(ctx, task, durable.After(0)); return err },
		"ScheduleBatch": func(ctx context.Context) error {
			_, err := c.ScheduleBatch(ctx, []durable.Item{{Task: task, When: durable.After(0)}})
			return err
		},
		"Cancel":     func(ctx context.Context) error { _, err := c.Cancel(ctx, "before1"); return err },
		"Reschedule": func(ctx context.Context) error { _, err := c.Reschedule(ctx, "before1", durable.After(0)); return err },
		"Requeue":    func(ctx context.Context) error { _, err := c.Requeue(ctx, "k", durable.After(0)); return err },
		"Purge":      func(ctx context.Context) error { _, err := c.Purge(ctx, "k"); return err },
		"Pause":      c.Pause,
		"Get":        func(ctx context.Context) error { _, err := c.Get(ctx, "k"); return err },
		"Stats":      func(ctx context.Context) error { _, err := c.Stats(ctx); return err },
		"Check":      func(ctx context.Context) error { _, err := c.Check(ctx); return err },
		"Repair":     func(ctx context.Context) error { _, err := c.Repair(ctx); return err },
		"List": func(ctx context.Context) (err error) {
			for _, err = range c.List(ctx, durable.Filter{State: durable.Dead}) {
			}
			return err
		},
	} {
		ctx, cancel := ago()
		err := call(ctx)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
	}
	// A call also returns when its context is cancelled. Its command has no deadline, so
	// the server carries it out later.
	ctx, cancel := context.WithCancel(context.Background())
	comb := &other.s.shards[store.ShardOf("later", 4)].combiner
	sent := func(busy bool) bool {
		comb.mu.Lock()
		defer comb.mu.Unlock()
		return len(comb.queue) == 0 && busy == comb.sending
	}
	go func() {
		for !sent(true) {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	_, err = other.Schedule(ctx, durable.Task{Key: "later", Handler: "h"}, durable.After(time.Hour))
	require.ErrorIs(t, err, context.Canceled)
	var u *durable.UnknownError
	require.ErrorAs(t, err, &u)
	s.Resume()
	require.Eventually(t, func() bool { _, err := c.Stats(context.Background()); return err == nil }, time.Minute, 10*time.Millisecond)
	// Wait until the late commands have arrived.
	require.Eventually(t, func() bool { return len(c.s.callSlots)+len(other.s.callSlots) == 0 && sent(false) }, time.Minute, 10*time.Millisecond)
	out, err := u.Again(context.Background())
	require.NoError(t, err)
	require.Equal(t, []durable.Outcome{durable.Created}, out)
	_, err = c.Get(context.Background(), "k")
	require.ErrorIs(t, err, durable.ErrNotFound)
	_, err = c.Get(context.Background(), "before1")
	require.NoError(t, err)
	st, err := c.Stats(context.Background())
	require.NoError(t, err)
	require.Zero(t, st.Paused)
}

// Thousands of calls that time out hold no memory, and their tasks do not appear later.
func TestSchedule_ManyThatTimeOut(t *testing.T) {
	s, c := frozen(t)
	s.Suspend()
	const n = 5000
	body := make([]byte, 60<<10)
	var all sync.WaitGroup
	errs := make(chan error, n)
	before := heap()
	for i := range n {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			_, err := c.Schedule(ctx, durable.Task{Key: fmt.Sprint(i), Handler: "h", Body: body}, durable.After(0))
			errs <- err
		})
	}
	all.Wait()
	held := heap() - before
	close(errs)
	busy := 0
	for err := range errs {
		if errors.Is(err, durable.ErrBusy) {
			busy++
			require.NotErrorIs(t, err, durable.ErrUnknown)
			continue
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.Less(t, held, 64<<20, "bytes")
	// A command is refused if maxQueued commands are waiting.
	b := &c.s.shards[store.ShardOf("one more", 4)].combiner
	b.mu.Lock()
	queue := b.queue
	b.queue = make([]*pendingCommand, maxQueued)
	b.mu.Unlock()
	_, err := c.Schedule(context.Background(), durable.Task{Key: "one more", Handler: "h"}, durable.After(0))
	require.ErrorIs(t, err, durable.ErrBusy)
	require.NotErrorIs(t, err, durable.ErrUnknown)
	b.mu.Lock()
	b.queue = queue
	b.mu.Unlock()
	s.Resume()
	for _, sh := range c.s.shards {
		require.Eventually(t, func() bool {
			sh.combiner.mu.Lock()
			defer sh.combiner.mu.Unlock()
			return !sh.combiner.sending
		}, time.Minute, 10*time.Millisecond)
	}
	st, err := c.Stats(context.Background())
	require.NoError(t, err)
	require.EqualValues(t, 4, st.Pending, "only the tasks scheduled before the freeze exist")
	t.Logf("%d MB held, %d refused", held>>20, busy)
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Commands in one batch keep their own deadlines.
func TestSchedule_OfSeveralDeadlines(t *testing.T) {
	_, c := frozen(t)
	ctx := context.Background()
	b := &c.s.shards[0].combiner
	for round, ops := range [][]store.Op{{store.Schedule}, {store.Schedule, store.Import}, {store.Cancel, store.Reschedule}} {
		now, err := c.s.Now(ctx, 0)
		require.NoError(t, err)
		var some []*pendingCommand
		for i := range 20 {
			id := fmt.Sprint("k", round, " ", i)
			item := store.Item{ID: id}
			st := store.Stamp{Sender: id, Number: 1}
			switch i % 3 {
			case 0:
				st.Until = now - 1
			case 1:
				st.Until = now.Add(time.Minute)
			}
			op := ops[i%len(ops)]
			switch task := (store.Task{ID: id, Handler: "h"}); op {
			case store.Schedule:
				item.Task, item.When = task, store.After(time.Hour)
			case store.Import:
				item.Entry = &store.Entry{Task: task, State: store.Pending, At: now.Add(time.Hour), Due: now.Add(time.Hour)}
			case store.Reschedule:
				item.When = store.After(time.Hour)
			}
			x := &pendingCommand{shard: c.s.shards[0], senderField: senderField(&st), op: op, itemCount: 1, done: make(chan struct{})}
			x.encodeArgs(&st, &store.Command{Op: op, Items: []store.Item{item}})
			some = append(some, x)
		}
		require.Eventually(t, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return !b.sending
		}, time.Minute, time.Millisecond)
		b.mu.Lock()
		b.queue, b.sending = slices.Clone(some), true
		b.mu.Unlock()
		b.sendNext(ctx)
		for i, x := range some {
			<-x.done
			if i%3 == 0 {
				require.ErrorIs(t, x.err, store.ErrLate)
				continue
			}
			require.NoError(t, x.err)
			want := store.Created
			if x.op == store.Cancel || x.op == store.Reschedule {
				want = store.Absent
			}
			require.Equal(t, []store.Outcome{want}, x.outcomes)
		}
	}
	st, err := c.Stats(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 4+13+13, st.Pending)
}

// Run and Shutdown return even if the server does not answer.
func TestShutdown_OfAServerThatIsFrozen(t *testing.T) {
	t.Parallel() // it mostly waits
	s, c := frozen(t)
	defer s.Resume()
	w := durable.NewWorker(c.Client)
	begun := make(chan struct{}, 1)
	w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(context.Background()) }()
	_, err := c.Schedule(context.Background(), durable.Task{Key: "k", Handler: "h"}, durable.After(0))
	require.NoError(t, err)
	<-begun
	s.Suspend()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	require.ErrorIs(t, w.Shutdown(ctx), context.DeadlineExceeded)
	require.ErrorIs(t, <-done, durable.ErrNotHandedBack)
}
