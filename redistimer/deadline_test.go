package redistimer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/redistimer/internal/redistest"
)

// frozen returns a server that does not answer any more, and a client which it has
// answered before.
func frozen(t *testing.T) (*redistest.Server, *Client) {
	t.Helper()
	s := redistest.Start(t)
	// Go-redis itself waits for ever then.
	r := s.Client(func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = -1, -1 })
	t.Cleanup(func() { r.Close() })
	c := New(r, WithShards(4), silent)
	for i := range 4 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		_, err := c.Schedule(ctx, Task{Key: fmt.Sprint("before", i), Handler: "h"}, After(time.Hour))
		cancel()
		require.NoError(t, err)
	}
	return s, c
}

// No method outlives its context, whatever the server does, and what was given up is
// not carried out after the deadline.
func TestContext_EndsTheCall(t *testing.T) {
	s, c := frozen(t)
	s.Suspend()
	ago := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), 100*time.Millisecond)
	}
	task := Task{Key: "k", Handler: "h"}
	for name, call := range map[string]func(ctx context.Context) error{
		"Schedule":      func(ctx context.Context) error { _, err := c.Schedule(ctx, task, After(0)); return err },
		"ScheduleBatch": func(ctx context.Context) error { _, err := c.ScheduleBatch(ctx, []Item{{task, After(0)}}); return err },
		"Replicated": func(ctx context.Context) error {
			_, err := c.Schedule(ctx, task, After(0), Replicated(1, time.Second))
			return err
		},
		"Cancel":     func(ctx context.Context) error { _, err := c.Cancel(ctx, "before1"); return err },
		"Reschedule": func(ctx context.Context) error { _, err := c.Reschedule(ctx, "before1", After(0)); return err },
		"Requeue":    func(ctx context.Context) error { _, err := c.Requeue(ctx, "k", After(0)); return err },
		"Purge":      func(ctx context.Context) error { _, err := c.Purge(ctx, "k"); return err },
		"Pause":      c.Pause,
		"Get":        func(ctx context.Context) error { _, err := c.Get(ctx, "k"); return err },
		"Stats":      func(ctx context.Context) error { _, err := c.Stats(ctx); return err },
		"Check":      func(ctx context.Context) error { _, err := c.Check(ctx); return err },
		"Repair":     func(ctx context.Context) error { _, err := c.Repair(ctx); return err },
		"DeadLetters": func(ctx context.Context) (err error) {
			for _, err = range c.DeadLetters(ctx) {
			}
			return err
		},
	} {
		ctx, cancel := ago()
		err := call(ctx)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
	}
	// One that is cancelled ends too. It has no deadline, and is carried out later.
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := c.Schedule(ctx, Task{Key: "later", Handler: "h"}, After(time.Hour))
	require.ErrorIs(t, err, context.Canceled)
	var u *UnknownError
	require.ErrorAs(t, err, &u)
	s.Resume()
	require.Eventually(t, func() bool { _, err := c.Stats(context.Background()); return err == nil }, time.Minute, 10*time.Millisecond)
	// Whatever is still on its way comes too late.
	require.Eventually(t, func() bool { return len(c.waiting) == 0 }, time.Minute, 10*time.Millisecond)
	out, err := u.Again(context.Background())
	require.NoError(t, err)
	require.Equal(t, []Outcome{Created}, out)
	_, err = c.Get(context.Background(), "k")
	require.ErrorIs(t, err, ErrNotFound)
	_, err = c.Get(context.Background(), "before1")
	require.NoError(t, err)
	st, err := c.Stats(context.Background())
	require.NoError(t, err)
	require.Zero(t, st.Paused)
}

// Thousands of calls that time out hold no memory, and their tasks do not come later.
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
			_, err := c.Schedule(ctx, Task{Key: fmt.Sprint(i), Handler: "h", Body: body}, After(0))
			errs <- err
		})
	}
	all.Wait()
	held := heap() - before
	close(errs)
	busy := 0
	for err := range errs {
		if errors.Is(err, ErrBusy) {
			busy++
			require.NotErrorIs(t, err, ErrUnknown)
			continue
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.Less(t, held, 64<<20, "bytes")
	require.NotZero(t, busy)
	s.Resume()
	require.Eventually(t, func() bool {
		c.combiners[0].mu.Lock()
		defer c.combiners[0].mu.Unlock()
		return c.combiners[0].busy == 0
	}, time.Minute, 10*time.Millisecond)
	st, err := c.Stats(context.Background())
	require.NoError(t, err)
	require.EqualValues(t, 4, st.Pending, "those from before")
	t.Logf("%d MB held, %d refused", held>>20, busy)
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// What goes out together has one deadline, the first: the others are sent again.
func TestSchedule_OfSeveralDeadlines(t *testing.T) {
	_, c := frozen(t)
	ctx := context.Background()
	b := c.combiners[0]
	past := time.Now().Add(-time.Minute)
	var some []*lone
	for i := range 20 {
		record, err := encode(&Task{Handler: "h"}, "")
		require.NoError(t, err)
		key := fmt.Sprint("k", i)
		x := &lone{shard: c.shardOf(key), key: key, when: "+0", record: record, mode: modeUpsert, done: make(chan struct{})}
		switch i % 3 {
		case 0:
			x.until = past
		case 1:
			x.until = time.Now().Add(time.Minute)
		}
		some = append(some, x)
	}
	require.Eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.busy == 0
	}, time.Minute, time.Millisecond)
	b.mu.Lock()
	b.queue, b.busy = some, 1
	for _, x := range some {
		b.bytes += len(x.record)
	}
	b.mu.Unlock()
	b.lead(ctx)
	for i, x := range some {
		<-x.done
		if i%3 == 0 {
			require.ErrorIs(t, x.err, context.DeadlineExceeded)
			require.NotErrorIs(t, x.err, ErrUnknown)
			continue
		}
		require.NoError(t, x.err)
		require.Equal(t, Created, x.out)
	}
	st, err := c.Stats(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 4+13, st.Pending)
}

// Run and Shutdown end although the server does not answer.
func TestShutdown_OfAServerThatIsFrozen(t *testing.T) {
	s, c := frozen(t)
	defer s.Resume()
	w := NewWorker(c)
	begun := make(chan struct{}, 1)
	w.Handle("h", func(ctx context.Context, d Delivery) error {
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(context.Background()) }()
	_, err := c.Schedule(context.Background(), Task{Key: "k", Handler: "h"}, After(0))
	require.NoError(t, err)
	<-begun
	s.Suspend()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	require.ErrorIs(t, w.Shutdown(ctx), context.DeadlineExceeded)
	require.ErrorIs(t, <-done, ErrNotHandedBack)
}

// A Run that has not reached the server yet has nothing that Shutdown could wait for.
func TestShutdown_OfARunThatBegins(t *testing.T) {
	s, c := frozen(t)
	s.Suspend()
	defer s.Resume()
	w := NewWorker(c)
	done := make(chan error, 1)
	go func() { done <- w.Run(context.Background()) }()
	for begun := false; !begun; time.Sleep(time.Millisecond) {
		begun = len(c.waiting) > 0 || w.isRunning()
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Shutdown(context.Background()) }()
	for name, ch := range map[string]chan error{"Shutdown": ended, "Run": done} {
		select {
		case err := <-ch:
			require.NoError(t, err, name)
		case <-time.After(30 * time.Second):
			s.Resume()
			t.Fatal(name, "waits for the server")
		}
	}
}

func (w *Worker) isRunning() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current != nil
}
