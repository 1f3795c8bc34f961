package durable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// explain returns the only explanation's reasons, after a check of the rest.
func explain(t *testing.T, c *durable.Client, id string, kinds ...durable.ReasonKind) []durable.Reason {
	t.Helper()
	synctest.Wait() // no round is under way
	x, err := c.Explain(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, id, x.ID)
	require.True(t, x.Now.Equal(time.Now()), x.Now)
	var got []durable.ReasonKind
	for _, r := range x.Reasons {
		got = append(got, r.Kind)
		require.NotEmpty(t, r.Text)
		require.NotRegexp(t, "[a-z][A-Z]|Resume|Pause|Cancel|Schedule", r.Text) // readers of the API know no method of the library
	}
	require.Equal(t, kinds, got, "%+v", x.Reasons)
	return x.Reasons
}

func TestExplain_EachReason(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memstore.Store) {
		c := durable.New(memstore.New(), quiet) // a limit needs a store of one shard
		ctx := t.Context()
		_, err := c.Explain(ctx, "absent")
		require.ErrorIs(t, err, durable.ErrNotFound)
		_, err = c.Explain(ctx, "")
		require.ErrorIs(t, err, durable.ErrInvalid)
		begin := time.Now()

		schedule(t, c, durable.Task{Key: "later", Handler: "slow"}, durable.After(time.Hour))
		r := explain(t, c, "later", durable.ReasonNotDue, durable.ReasonNoWorker)
		require.True(t, r[0].Until.Equal(begin.Add(time.Hour)), r[0].Until)
		schedule(t, c, durable.Task{Key: "unknown", Handler: "nobody has it"}, durable.After(0))
		require.Contains(t, explain(t, c, "unknown", durable.ReasonNoWorker)[0].Text, "nobody has it")

		w := durable.NewWorker(c, durable.WithConcurrency(4), durable.WithMaxAttempts(2))
		release := make(chan struct{})
		hold := func(ctx context.Context, d durable.Delivery) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-release:
				return nil
			}
		}
		w.Handle("slow", hold)
		w.Handle("two", hold, durable.WithHandlerConcurrency(2))
		w.Handle("rated", func(context.Context, durable.Delivery) error { return nil }, durable.WithRate(0.001))
		w.Handle("fails", func(context.Context, durable.Delivery) error {
			return durable.RetryAfter(errors.New("it broke"), time.Minute)
		})
		w.Handle("back", func(context.Context, durable.Delivery) error {
			return durable.HandBack(errors.New("no room"), time.Minute)
		})
		start(t, w)
		time.Sleep(time.Second)
		explain(t, c, "later", durable.ReasonNotDue)

		// Attempts that failed or were handed back, and a dead letter.
		schedule(t, c, durable.Task{Key: "fails", Handler: "fails"}, durable.After(0))
		schedule(t, c, durable.Task{Key: "back", Handler: "back"}, durable.After(0))
		time.Sleep(time.Second)
		info, err := c.Get(ctx, "fails")
		require.NoError(t, err)
		r = explain(t, c, "fails", durable.ReasonBackoff)
		require.Equal(t, "it broke", r[0].Note)
		require.True(t, r[0].Until.Equal(info.At))
		r = explain(t, c, "back", durable.ReasonHandedBack)
		require.Equal(t, []any{"no room", 1}, []any{r[0].Note, r[0].Count})
		require.False(t, r[0].Until.IsZero())
		time.Sleep(2 * time.Minute)
		require.Equal(t, "it broke", explain(t, c, "fails", durable.ReasonDead)[0].Note)
		_, err = c.Cancel(ctx, "back")
		require.NoError(t, err)

		// Rates and limits of the Worker.
		schedule(t, c, durable.Task{Key: "r1", Handler: "rated"}, durable.After(0))
		time.Sleep(time.Second)
		schedule(t, c, durable.Task{Key: "r2", Handler: "rated"}, durable.After(0))
		time.Sleep(time.Second)
		explain(t, c, "r2", durable.ReasonWorkerRate)
		for _, key := range []string{"t1", "t2", "t3"} {
			schedule(t, c, durable.Task{Key: key, Handler: "two"}, durable.After(0))
			time.Sleep(time.Second)
		}
		workers, err := c.Workers(ctx)
		require.NoError(t, err)
		id := workers[0].ID
		r = explain(t, c, "t1", durable.ReasonRunning)
		require.Equal(t, id, r[0].Worker)
		r = explain(t, c, "t3", durable.ReasonWorkerLimit)
		require.Equal(t, []any{id, 2, "t1", "t2", id}, []any{r[0].Worker, r[0].Count, r[0].Holders[0].ID, r[0].Holders[1].ID, r[0].Holders[0].Worker})
		require.WithinRange(t, r[0].AsOf, time.Now().Add(-time.Minute), time.Now())

		// The last place is only for a handler that runs nothing.
		schedule(t, c, durable.Task{Key: "s1", Handler: "slow"}, durable.After(0))
		time.Sleep(time.Second)
		schedule(t, c, durable.Task{Key: "s2", Handler: "slow"}, durable.After(0))
		time.Sleep(time.Second)
		r = explain(t, c, "s2", durable.ReasonPlaces)
		require.Equal(t, 3, r[0].Count)
		require.Contains(t, r[0].Text, "3 of 4 places")

		// A limit over all Workers.
		require.NoError(t, c.SetLimit(ctx, "slow", durable.Limit{Concurrency: 1}))
		r = explain(t, c, "s2", durable.ReasonLimit, durable.ReasonPlaces)
		require.Equal(t, []any{1, "s1"}, []any{r[0].Count, r[0].Holders[0].ID})

		// Pauses.
		require.NoError(t, c.PauseHandler(ctx, "slow", "it is broken"))
		require.NoError(t, c.Pause(ctx))
		_, err = c.PauseTask(ctx, "s2")
		require.NoError(t, err)
		r = explain(t, c, "s2", durable.ReasonStorePaused, durable.ReasonHandlerPaused, durable.ReasonTaskPaused)
		require.Equal(t, "it is broken", r[1].Note)
		explain(t, c, "s1", durable.ReasonRunning)
		require.NoError(t, c.ResumeHandler(ctx, "slow"))
		require.NoError(t, c.Resume(ctx))
		explain(t, c, "s2", durable.ReasonTaskPaused)
		_, err = c.ResumeTask(ctx, "s2")
		require.NoError(t, err)
		require.NoError(t, c.SetLimit(ctx, "slow", durable.Limit{}))

		// Nothing is left when the places are free again.
		close(release)
		time.Sleep(time.Second)
		_, err = c.Explain(ctx, "s2")
		require.ErrorIs(t, err, durable.ErrNotFound)
	})
}
