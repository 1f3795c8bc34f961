package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
)

func told(t *testing.T, losses <-chan error) error {
	t.Helper()
	select {
	case err := <-losses:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("the loss was not reported")
		return nil
	}
}

func lossHandler(losses chan error) Option {
	return WithLossHandler(func(err error) {
		select {
		case losses <- err:
		default:
		}
	})
}

func TestLoss_OfAllDataIsReportedToWhoOnlySchedules(t *testing.T) {
	ctx := context.Background()
	for name, lose := range map[string]func(t *testing.T, s *redistest.Server, r *redis.Client){
		"FLUSHALL": func(t *testing.T, s *redistest.Server, r *redis.Client) {
			require.NoError(t, r.FlushAll(ctx).Err())
		},
		"restart without data": func(t *testing.T, s *redistest.Server, r *redis.Client) {
			s.Kill()
			s.Restart()
		},
		"somebody else comes first": func(t *testing.T, s *redistest.Server, r *redis.Client) {
			require.NoError(t, r.FlushAll(ctx).Err())
			_, err := newClient(r, WithShards(1)).Schedule(ctx, durable.Task{Key: "other", Handler: "h"}, durable.After(time.Hour))
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			r := s.Client()
			defer r.Close()
			losses := make(chan error, 10)
			c := newClient(r, WithShards(1), lossHandler(losses))
			for i := range 10 {
				_, err := c.Schedule(ctx, durable.Task{Key: fmt.Sprint(i), Handler: "h"}, durable.After(time.Hour))
				require.NoError(t, err)
			}
			require.Empty(t, losses)
			lose(t, s, r)
			out, err := c.Schedule(ctx, durable.Task{Key: "new", Handler: "h"}, durable.After(time.Hour))
			require.NoError(t, err)
			require.Equal(t, durable.Created, out)
			require.ErrorIs(t, told(t, losses), ErrLost)
			_, err = c.Schedule(ctx, durable.Task{Key: "newer", Handler: "h"}, durable.After(time.Hour))
			require.NoError(t, err)
			require.Empty(t, losses, "once")
		})
	}
}

// A flusher empties a server before each script.
type flusher struct {
	other atomic.Pointer[redis.Client]
	sent  atomic.Int64
}

func (f *flusher) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *flusher) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f *flusher) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if r := f.other.Load(); r != nil && strings.HasPrefix(cmd.Name(), "eval") {
			f.sent.Add(1)
			if err := r.FlushAll(ctx).Err(); err != nil {
				return err
			}
		}
		return next(ctx, cmd)
	}
}

// A command is not repeated for ever if the server loses its data before each attempt.
func TestLoss_EachTimeThatACommandIsSent(t *testing.T) {
	ctx := context.Background()
	server := redistest.Start(t)
	r, other := server.Client(), server.Client()
	defer r.Close()
	defer other.Close()
	f := &flusher{}
	r.AddHook(f)
	c := newClient(r, WithShards(1))
	task := durable.Task{Key: "k", Handler: "h"}
	_, err := c.Schedule(ctx, task, durable.After(time.Hour))
	require.NoError(t, err)
	f.other.Store(other)
	_, err = c.Schedule(ctx, task, durable.After(time.Hour))
	require.ErrorIs(t, err, ErrLost)
	require.EqualValues(t, 5, f.sent.Load())
	f.other.Store(nil)
	out, err := c.Schedule(ctx, task, durable.After(time.Hour))
	require.NoError(t, err)
	require.Equal(t, durable.Created, out)
}

// A full server with noeviction refuses commands that may need memory. Running tasks must
// still keep their leases and end.
func TestWorker_OnAServerThatIsFull(t *testing.T) {
	t.Parallel() // it mostly waits
	ctx := context.Background()
	r := redistest.Start(t, "--maxmemory-policy", "noeviction").Client()
	defer r.Close()
	c := newClient(r, WithShards(2))
	const n = 50
	w := durable.NewWorker(c.Client, durable.WithLease(6*time.Second), durable.WithMaxCrashes(1))
	full := make(chan struct{})
	begun, failed := make(chan string, 2*n), make(chan error, n)
	w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
		begun <- d.Key
		if d.Attempt == 1 && d.Key[0] == 'r' {
			return errors.New("once more")
		}
		<-full
		// Wait until the lease was extended twice.
		var last time.Time
		for times := 0; times < 3; {
			info, err := c.Get(ctx, d.Key)
			if err == nil && !info.At.Equal(last) {
				times, last = times+1, info.At
			}
			select {
			case <-ctx.Done():
				failed <- context.Cause(ctx)
				return ctx.Err()
			case <-time.After(50 * time.Millisecond):
			}
		}
		return nil
	}, durable.WithBackoff(0, 0))
	for i := range n {
		_, err := c.Schedule(ctx, durable.Task{Key: fmt.Sprint(string("rk"[i%2]), i), Handler: "h"}, durable.After(0))
		require.NoError(t, err)
	}
	for i := range 4 {
		_, err := c.Schedule(ctx, durable.Task{Key: fmt.Sprint("tomorrow", i), Handler: "h"}, durable.After(24*time.Hour))
		require.NoError(t, err)
	}
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-begun
	require.NoError(t, r.ConfigSet(ctx, "maxmemory", "1").Err())
	_, err := c.Schedule(ctx, durable.Task{Key: "refused", Handler: "h"}, durable.After(0))
	require.ErrorContains(t, err, "OOM")
	require.NotErrorIs(t, err, durable.ErrUnknown)
	close(full)
	require.Eventually(t, func() bool {
		st, err := c.Stats(ctx)
		return err == nil && st.Done == n
	}, time.Minute, 20*time.Millisecond)
	out, err := c.Cancel(ctx, "tomorrow0")
	require.NoError(t, err)
	require.Equal(t, durable.Removed, out)
	out, err = c.Reschedule(ctx, "tomorrow1", durable.After(time.Hour))
	require.NoError(t, err)
	require.Equal(t, durable.Moved, out)
	st, err := c.Stats(ctx)
	require.NoError(t, err)
	require.Zero(t, st.Crashed+st.Died+st.Refused)
	require.Empty(t, failed)
	require.NoError(t, w.Shutdown(ctx))
	require.NoError(t, <-done)
}
