//go:build unix

package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore"
)

// One answer in three is lost with its connection, and go-redis repeats the command. By
// then the task may be done and deleted.
func TestFault_AnswersLost(t *testing.T) {
	x, s := onServer(t)
	p := newProxy(t, s.Addr)
	var dropped atomic.Int32
	var on atomic.Bool
	p.reply = func(b []byte) bool {
		// Drop only answers to commands. If the answer to a connection's greeting is lost,
		// go-redis sends no command.
		if on.Load() && bytes.HasPrefix(b, []byte("$2\r\no")) && rand.IntN(3) == 0 {
			dropped.Add(1)
			return false
		}
		return true
	}
	p.serve()
	r := redis.NewClient(&redis.Options{Addr: p.addr(), MaxRetries: 5})
	defer r.Close()
	c := newClient(r)
	ctx := context.Background()
	_, err := c.Check(ctx)
	require.NoError(t, err)
	x.work(x.r, nil)
	on.Store(true)
	const n = 200
	unknown := 0
	// sure repeats a command with UnknownError.Again until its outcome is known.
	sure := func(out durable.Outcome, err error) durable.Outcome {
		for range 20 {
			var u *durable.UnknownError
			if !errors.As(err, &u) {
				break
			}
			unknown++
			var all []durable.Outcome
			if all, err = u.Again(ctx); len(all) > 0 {
				out = all[0]
			}
		}
		require.NoError(t, err)
		return out
	}
	for i := range n {
		key := fmt.Sprint(keyPrefix, i)
		require.Equal(t, durable.Created, sure(c.Schedule(ctx, durable.Task{Key: key, Handler: "h"}, durable.After(0))))
		x.acked[key] = true
		other := fmt.Sprint(keyPrefix, "cancelled-", i)
		require.Equal(t, durable.Created, sure(c.Schedule(ctx, durable.Task{Key: other, Handler: "h"}, durable.After(time.Hour))))
		require.Equal(t, durable.Moved, sure(c.Reschedule(ctx, other, durable.After(2*time.Hour))))
		require.Equal(t, durable.Removed, sure(c.Cancel(ctx, other)))
	}
	on.Store(false)
	x.done(30 * time.Second)
	x.note("%d answers to %d calls of Schedule, Reschedule and Cancel dropped, with their connections; %d calls were asked for again", dropped.Load(), 4*n, unknown)
	require.Greater(t, dropped.Load(), int32(100))
	require.Zero(t, x.dups)
}

// A full server refuses new tasks, but long tasks continue and end.
func TestFault_FullServerWithLongTasks(t *testing.T) {
	x, _ := onServer(t)
	ctx := context.Background()
	const n = 50
	var running sync.WaitGroup
	running.Add(n)
	full := make(chan struct{})
	x.work(x.r, func(ctx context.Context, d durable.Delivery) error {
		running.Done()
		<-full
		var last time.Time
		for times := 0; times < 3; { // until its lease was extended twice
			info, err := x.c.Get(ctx, d.Key)
			if err == nil && !info.At.Equal(last) {
				times, last = times+1, info.At
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(50 * time.Millisecond):
			}
		}
		x.l.note(d.Key, d.Due, 0)
		return nil
	}, durable.WithLease(6*time.Second), durable.WithMaxAttempts(1), durable.WithMaxCrashes(1))
	x.schedule(0, n, now, "")
	running.Wait()
	require.NoError(t, x.r.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err())
	require.NoError(t, x.r.ConfigSet(ctx, "maxmemory", "1mb").Err())
	_, err := x.c.Schedule(ctx, durable.Task{Key: "k", Handler: "h"}, durable.After(0))
	require.ErrorContains(t, err, "OOM")
	close(full)
	st := x.done(30 * time.Second)
	x.note("the server is full while %d tasks run until their leases were extended twice, each with one attempt; Schedule fails with OOM", n)
	require.Zero(t, st.Dead+st.Crashed)
	require.EqualValues(t, n, st.Done)
}

// FLUSHALL empties the server. The Store logs the loss and continues.
func TestFault_ServerEmptied(t *testing.T) {
	x, _ := onServer(t)
	x.loose = true
	var log syncBuffer
	c := durable.New(redisstore.New(x.r, redisstore.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))), durable.WithLogger(quietLog))
	w := durable.NewWorker(c)
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		x.l.note(d.Key, d.Due, 0)
		return nil
	})
	x.run(w)
	x.schedule(0, 1000, func(int) durable.When { return durable.After(time.Hour) }, "")
	require.NoError(t, x.r.FlushAll(context.Background()).Err())
	x.eventually(30*time.Second, "the loss is logged", func() bool { return strings.Contains(log.String(), redisstore.ErrLost.Error()) })
	x.schedule(1000, 1000, soon(time.Second), "")
	x.done(30 * time.Second)
	x.note("FLUSHALL with 1000 tasks pending: a worker logs the loss, and tasks scheduled afterwards are run")
	require.Len(t, x.lost, 1000)
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
