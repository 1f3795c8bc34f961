package durable_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// Each outcome of an attempt has its own counter for each handler.
func TestWorkerHandlerStats_CountEachEnd(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c, durable.WithBackoff(time.Second, time.Second), durable.WithMaxAttempts(2))
		handed := false
		w.Handle("ok", func(context.Context, durable.Delivery) error {
			time.Sleep(3 * time.Second)
			return nil
		})
		w.Handle("bad", func(context.Context, durable.Delivery) error { return errors.New("it broke") })
		w.Handle("later", func(context.Context, durable.Delivery) error {
			if handed {
				return nil
			}
			handed = true
			return durable.HandBack(errors.New("no room"), time.Second)
		})
		schedule(t, c, durable.Task{Key: "a", Handler: "ok"}, durable.After(time.Second))
		schedule(t, c, durable.Task{Key: "b", Handler: "bad"}, durable.After(time.Second))
		schedule(t, c, durable.Task{Key: "c", Handler: "later"}, durable.After(time.Second))
		schedule(t, c, durable.Task{Key: "d", Handler: "nobody has it"}, durable.After(time.Second))
		schedule(t, c, durable.Task{Key: "e", Handler: "ok", Missed: durable.DeadMissed, MissedAfter: 1}, durable.After(time.Second))
		time.Sleep(6 * time.Second) // nobody is there: each is 5 s late
		start(t, w)
		time.Sleep(time.Second)
		require.Equal(t, 1, w.HandlerStats()[2].Running)
		time.Sleep(time.Minute)

		all := w.HandlerStats()
		require.Len(t, all, 3)
		bad, later, ok := all[0], all[1], all[2]
		require.Equal(t, []string{"bad", "later", "ok"}, []string{bad.Handler, later.Handler, ok.Handler})

		require.EqualValues(t, 1, ok.Done)
		require.EqualValues(t, 1, ok.Dropped, "the missed run")
		require.EqualValues(t, 2, ok.Claimed)
		require.Zero(t, ok.Running)
		require.EqualValues(t, 1, ok.Ran.Count())
		require.Equal(t, 3*time.Second, ok.Ran.Max())
		require.EqualValues(t, 1, ok.Lateness.Count(), "the missed run has no lateness")
		require.Equal(t, 5*time.Second, ok.Lateness.Max())

		require.EqualValues(t, 2, bad.Claimed)
		require.EqualValues(t, 1, bad.Retried)
		require.EqualValues(t, 1, bad.Died)
		require.EqualValues(t, 1, bad.Lateness.Count(), "only the first attempt has a lateness")

		require.EqualValues(t, 2, later.Claimed)
		require.EqualValues(t, 1, later.Released)
		require.EqualValues(t, 1, later.Done)
		require.EqualValues(t, 1, later.Lateness.Count(), "an attempt that was handed back does not count")
		require.Equal(t, 6*time.Second, later.Lateness.Max())

		dead := w.RecentDead()
		require.Len(t, dead, 2)
		require.Equal(t, "e", dead[0].Key)
		require.Contains(t, dead[0].Error, "missed")
		require.Equal(t, "b", dead[1].Key)
		require.Equal(t, "bad", dead[1].Handler)
		require.Equal(t, 2, dead[1].Attempt)
		require.Equal(t, "it broke", dead[1].Error)
	})
}

// A task that is cancelled or scheduled again while it runs is not retried. It does not
// become a dead letter either.
func TestWorkerHandlerStats_Overtaken(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		var log strings.Builder
		c := durable.New(mem, durable.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		w := durable.NewWorker(c, durable.WithMaxAttempts(2))
		overtake := map[string]func(key string) (durable.Outcome, error){
			"cancel":     func(key string) (durable.Outcome, error) { return c.Cancel(ctx, key) },
			"reschedule": func(key string) (durable.Outcome, error) { return c.Reschedule(ctx, key, durable.After(time.Hour)) },
			"schedule": func(key string) (durable.Outcome, error) {
				return c.Schedule(ctx, durable.Task{Key: key, Handler: "h"}, durable.After(time.Hour))
			},
		}
		returns := map[string]error{"ok": nil, "retry": errors.New("it broke"), "dead": durable.NoRetry(errors.New("it broke")),
			"back": durable.HandBack(errors.New("no room"), time.Second)}
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			how, end, _ := strings.Cut(d.Key, " ")
			out, err := overtake[how](d.Key)
			require.NoError(t, err)
			require.Contains(t, []durable.Outcome{durable.Stopping, durable.Following}, out)
			return returns[end]
		})
		for how := range overtake {
			for end := range returns {
				task := durable.Task{Key: how + " " + end, Every: 2 * time.Hour}
				if how == "reschedule" {
					task.Every = 0 // the failed run of a repeating task would stay
				}
				schedule(t, c, task, durable.After(time.Second))
				schedule(t, c, durable.Task{Key: how + " " + end + " once"}, durable.After(time.Second))
			}
		}
		returns["ok once"], returns["retry once"], returns["dead once"], returns["back once"] = returns["ok"], returns["retry"], returns["dead"], returns["back"]
		start(t, w)
		time.Sleep(time.Minute)

		st, err := c.Stats(ctx)
		require.NoError(t, err)
		h, all := w.HandlerStats()[0], w.Stats()
		require.Zero(t, st.Dead)
		require.EqualValues(t, 16, st.Pending)
		require.EqualValues(t, 12, h.Overtaken)
		require.EqualValues(t, 12, all.Overtaken)
		require.EqualValues(t, 12, all.Failed)
		require.Empty(t, w.RecentDead())
		require.NotContains(t, log.String(), "dead letter")
		require.Equal(t, 12, strings.Count(log.String(), "its task was cancelled or scheduled again meanwhile"))
		for _, n := range []struct{ store, worker, handler int64 }{
			{st.Died, all.Died, h.Died + h.Dropped}, {st.Retried, h.Retried, h.Retried},
			{st.Done, all.Done, h.Done}, {st.Released, all.Released, h.Released}, {st.Refused, all.Lost, h.Lost},
		} {
			require.Equal(t, n.store, n.worker)
			require.Equal(t, n.store, n.handler)
		}
	})
}

func TestWorkerHandlerStats_LostLease(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		cut := &faulty{Store: mem}
		c := durable.New(cut, quiet)
		w := durable.NewWorker(c, durable.WithLease(time.Second))
		w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
			if d.Attempt == 1 {
				cut.frozen.Store(true)
				time.Sleep(10 * time.Second)
				cut.frozen.Store(false)
			}
			return nil
		})
		schedule(t, c, durable.Task{Key: "a"}, durable.After(0))
		start(t, w)
		other := durable.NewWorker(durable.New(mem, quiet))
		other.Handle("h", func(context.Context, durable.Delivery) error { return nil })
		time.Sleep(time.Second)
		start(t, other)
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, w.HandlerStats()[0].Lost)
		require.EqualValues(t, 1, other.HandlerStats()[0].Done)
		require.Zero(t, other.HandlerStats()[0].Lateness.Count(), "only the first attempt has a lateness")
	})
}

// A task with a record of a later version counts as unknown. It does not count as an
// attempt of its handler.
func TestWorkerStats_Unknown(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		_, err := mem.Change(ctx, store.ShardOf("a", mem.Shards()), store.Stamp{Sender: "s", Number: 1}, store.Command{
			Op: store.Schedule, Items: []store.Item{{ID: "a", When: store.After(0), Task: store.Task{ID: "a", Handler: "h", Record: []byte{200}}}},
		})
		require.NoError(t, err)
		w := durable.NewWorker(durable.New(mem, quiet))
		w.Handle("h", func(context.Context, durable.Delivery) error { return nil })
		start(t, w)
		time.Sleep(time.Minute)
		require.Positive(t, w.Stats().Unknown)
		require.Zero(t, w.HandlerStats()[0].Claimed)
		require.Zero(t, w.HandlerStats()[0].Released)
	})
}
