//go:build unix

package chaos

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/redistimer"
)

// Workers of the old version do not have the handler that the new version's tasks
// name.
func TestFault_RollingDeploy(t *testing.T) {
	x, _ := onServer(t)
	old := make([]*redistimer.Worker, 3)
	for i := range old {
		old[i] = redistimer.NewWorker(redistimer.New(x.r, redistimer.WithLogger(quietLog)), redistimer.WithMaxAttempts(1))
		x.run(old[i])
	}
	x.schedule(0, 1000, now, "")
	handedBack := func() (n int64) {
		for _, w := range old {
			n += w.Stats().Unknown
		}
		return n
	}
	x.eventually(30*time.Second, "the old workers see all of it", func() bool { return handedBack() > 1000 })
	x.work(x.r, nil, redistimer.WithMaxAttempts(1))
	x.schedule(1000, 1000, soon(3*time.Second), "")
	st := x.done(60 * time.Second)
	x.note("3 workers without the handler beside one that has it, 1 attempt each: %d times a task was left to others", handedBack())
	require.Zero(t, st.Dead+st.Retried)
	require.Zero(t, x.dups)
	require.EqualValues(t, handedBack(), st.Unknown)
}

// A task that repeats every millisecond and fails every time has one dead letter.
func TestFault_RepeatingTaskFails(t *testing.T) {
	x, _ := onServer(t)
	ctx := context.Background()
	w := redistimer.NewWorker(redistimer.New(x.r, redistimer.WithLogger(quietLog)))
	w.Handle("fails", func(context.Context, redistimer.Delivery) error { return redistimer.NoRetry(errors.New("as always")) })
	w.Handle("h", func(_ context.Context, d redistimer.Delivery) error {
		x.l.note(d.Key, d.Due, 0)
		return nil
	})
	x.run(w)
	_, err := x.c.Schedule(ctx, redistimer.Task{Key: "fails", Handler: "fails", Every: time.Millisecond}, redistimer.After(0))
	require.NoError(t, err)
	x.schedule(0, 1000, soon(3*time.Second), "")
	x.eventually(20*time.Second, "it fails again and again", func() bool { return w.Stats().Died > 1000 })
	_, err = x.c.Cancel(ctx, "fails")
	require.NoError(t, err)
	st := x.done(30 * time.Second)
	x.note("a task that repeats every millisecond failed %d times", w.Stats().Died)
	require.EqualValues(t, 1, st.Dead)
	for d, err := range x.c.DeadLetters(ctx) {
		require.NoError(t, err)
		require.EqualValues(t, st.Died, d.Runs)
	}
}
