//go:build unix

package chaos

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
)

// In a rolling deploy, workers of the old version do not have the handler of new tasks.
func TestFault_RollingDeploy(t *testing.T) {
	x, _ := onServer(t)
	old := make([]*durable.Worker, 3)
	for i := range old {
		old[i] = durable.NewWorker(newClient(x.r), durable.WithMaxAttempts(1))
		x.run(old[i])
	}
	x.schedule(0, 1000, now, "")
	x.eventually(30*time.Second, "the old workers have seen all tasks", func() bool {
		st, err := x.c.Stats(t.Context())
		return err == nil && st.Unknown == 1000
	})
	x.work(x.r, nil, durable.WithMaxAttempts(1))
	x.schedule(1000, 1000, soon(3*time.Second), "")
	st := x.done(60 * time.Second)
	x.note("3 workers without the handler beside one that has it, 1 attempt each: 1000 tasks waited for it")
	require.Zero(t, st.Dead+st.Retried+st.Released+st.Unknown)
	require.Zero(t, x.dups)
	for _, w := range old {
		require.Zero(t, w.Stats().Claimed)
	}
}

// A task that repeats as fast as possible and always fails has only one dead letter.
func TestFault_RepeatingTaskFails(t *testing.T) {
	x, _ := onServer(t)
	ctx := context.Background()
	w := durable.NewWorker(newClient(x.r))
	w.Handle("fails", func(context.Context, durable.Delivery) error { return durable.NoRetry(errors.New("as always")) })
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		x.l.note(d.Key, d.Due, 0)
		return nil
	})
	x.run(w)
	failures := int64(300)
	if os.Getenv("TICKLESS_CHAOS") == "long" {
		failures = 1000
	}
	_, err := x.c.Schedule(ctx, durable.Task{Key: "fails", Handler: "fails", Every: time.Millisecond}, durable.After(0))
	require.NoError(t, err)
	x.schedule(0, 1000, soon(3*time.Second), "")
	x.eventually(20*time.Second, "the task fails repeatedly", func() bool { return w.Stats().Died > failures })
	_, err = x.c.Cancel(ctx, "fails")
	require.NoError(t, err)
	st := x.done(30 * time.Second)
	x.note("a task that repeats every millisecond failed %d times", w.Stats().Died)
	require.EqualValues(t, 1, st.Dead)
	for d, err := range x.c.List(ctx, durable.Filter{State: durable.Dead}) {
		require.NoError(t, err)
		require.EqualValues(t, st.Died, d.Runs)
	}
}
