package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/metrics"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/observe/vars"
)

var quiet = durable.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

// exported is the expvar output for a Client and a Worker.
type exported struct {
	Client map[string]map[string]any `json:"durable.client"`
	Worker map[string]map[string]any `json:"durable.worker"`
}

func export(t *testing.T, sources ...observe.Source) (all exported) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(vars.New(sources...).String()), &all))
	return all
}

// work schedules tasks with different outcomes and runs them with a worker.
func work(t *testing.T, c *durable.Client) *durable.Worker {
	t.Helper()
	w := durable.NewWorker(c, durable.WithMaxAttempts(1), durable.WithConcurrency(7))
	w.Handle("remind", func(context.Context, durable.Delivery) error {
		time.Sleep(2 * time.Second)
		return nil
	})
	w.Handle("bill", func(context.Context, durable.Delivery) error { return errors.New("no money") })
	w.Handle("hang", func(ctx context.Context, _ durable.Delivery) error {
		<-ctx.Done()
		return ctx.Err()
	})
	for handler, at := range map[string]time.Duration{"remind": 0, "bill": 0, "hang": 0, "nobody": 0, "later": time.Hour} {
		_, err := c.Schedule(t.Context(), durable.Task{Key: handler, Handler: handler}, durable.After(at))
		require.NoError(t, err)
	}
	time.Sleep(time.Second)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()
	t.Cleanup(func() {
		w.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	time.Sleep(10 * time.Second)
	return w
}

func TestSources_HaveWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := durable.New(memstore.New(), quiet)
		w := work(t, c)
		all := export(t, metrics.Client("orders", c), metrics.Worker("mailer", w))
		client, worker := all.Client["orders"], all.Worker["mailer"]
		require.EqualValues(t, 1, client["queue.up"])
		require.Equal(t, map[string]any{"pending": 1., "due": 0., "unknown": 1., "running": 1., "dead": 1., "past": 0., "astray": 0.}, client["queue.tasks"])
		require.EqualValues(t, 11, client["queue.late"])
		require.EqualValues(t, 3, client["queue.claimed"])
		require.EqualValues(t, 1, client["queue.done"])
		require.EqualValues(t, 1, client["queue.died"])
		require.Equal(t, map[string]any{"created": 5., "replaced": 0., "kept": 0., "following": 0.}, client["task.scheduled"])
		require.Contains(t, client["command.duration"], "round")

		require.EqualValues(t, 7, worker["places"])
		require.EqualValues(t, 1, worker["taken"])
		require.Equal(t, map[string]any{"bill": 1., "hang": 1., "remind": 1.}, worker["attempt.claimed"])
		require.Equal(t, map[string]any{"bill": 0., "hang": 1., "remind": 0.}, worker["attempt.running"])
		require.Equal(t, map[string]any{"bill": 1., "hang": 0., "remind": 0.}, worker["attempt.died"])
		lateness := worker["attempt.lateness"].(map[string]any)["remind"].(map[string]any)
		require.InDelta(t, 1, lateness["sum"], 0.01)
		duration := worker["attempt.duration"].(map[string]any)["remind"].(map[string]any)
		require.InDelta(t, 2, duration["sum"], 0.01)

		notes := metric.NewSet([]observe.Source{metrics.Worker("mailer", w)}).Read()[0].Notes()
		require.Len(t, notes, 1)
		require.Equal(t, `bill, key "bill", attempt 1`, notes[0].What)
		require.Equal(t, "no money", notes[0].Text)
	})
}

// Counters are exported as zero before the first command, so that a rate includes that
// command.
func TestClient_ZerosBeforeTheFirstCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := export(t, metrics.Client("orders", durable.New(memstore.New(), quiet))).Client["orders"]
		require.Equal(t, map[string]any{"created": 0., "replaced": 0., "kept": 0., "following": 0.}, got["task.scheduled"])
		require.Equal(t, map[string]any{"moved": 0., "following": 0., "absent": 0.}, got["task.rescheduled"])
		require.Equal(t, map[string]any{"removed": 0., "stopping": 0., "absent": 0.}, got["task.cancelled"])
		for _, name := range []string{"schedule", "reschedule", "cancel", "round"} {
			require.Subset(t, got["command.errors"], map[string]any{name: 0.})
			require.Contains(t, got["command.duration"], name)
		}
	})
}

// asked is a store whose Stats counts its calls, and can be made to fail or hang.
type asked struct {
	store.Store
	n     atomic.Int32
	err   atomic.Pointer[error]
	hangs atomic.Bool
}

func (a *asked) Stats(ctx context.Context, shard int) (store.Stats, error) {
	if shard == 0 {
		a.n.Add(1)
	}
	if a.hangs.Load() {
		<-ctx.Done()
		return store.Stats{}, ctx.Err()
	}
	if err := a.err.Load(); err != nil {
		return store.Stats{}, *err
	}
	return a.Store.Stats(ctx, shard)
}

func TestClient_AsksTheStoreNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &asked{Store: memstore.New()}
		source := metrics.Client("orders", durable.New(st, quiet), metrics.WithMaxAge(3*time.Second))
		read := func() map[string]any { return export(t, source).Client["orders"] }
		for range 3 {
			require.EqualValues(t, 1, read()["queue.up"])
		}
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 2, read()["queue.age"])
		require.EqualValues(t, 1, st.n.Load())
		time.Sleep(time.Second)
		require.EqualValues(t, 0, read()["queue.age"])
		require.EqualValues(t, 2, st.n.Load())

		broken := errors.New("no connection")
		st.err.Store(&broken)
		time.Sleep(3 * time.Second)
		for range 3 {
			got := read()
			require.EqualValues(t, 0, got["queue.up"])
			require.NotContains(t, got, "queue.tasks")
			require.NotContains(t, got, "queue.late")
		}
		require.EqualValues(t, 3, st.n.Load(), "an error must be remembered too")
		st.err.Store(nil)
		time.Sleep(3 * time.Second)
		require.EqualValues(t, 1, read()["queue.up"])
	})
}

// If the store hangs, one scrape waits for the timeout. Later scrapes return at once
// until it is time to read the store again.
func TestClient_AStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &asked{Store: memstore.New()}
		st.hangs.Store(true)
		source := metrics.Client("orders", durable.New(st, quiet))
		took := func() time.Duration {
			t.Helper()
			began := time.Now()
			got := export(t, source).Client["orders"]
			require.EqualValues(t, 0, got["queue.up"])
			require.NotContains(t, got, "queue.tasks")
			return time.Since(began)
		}
		require.Equal(t, 5*time.Second, took())
		require.Zero(t, took())
		require.EqualValues(t, 1, st.n.Load())
		time.Sleep(metrics.DefaultMaxAge)
		require.Equal(t, 5*time.Second, took())
		st.hangs.Store(false)
		time.Sleep(metrics.DefaultMaxAge)
		require.EqualValues(t, 1, export(t, source).Client["orders"]["queue.up"])
	})
}

func TestSources_RefuseNil(t *testing.T) {
	c := durable.New(memstore.New())
	for want, f := range map[string]func(){
		"metrics: Client: nil Client":                                      func() { metrics.Client("a", nil) },
		"metrics: Worker: nil Worker":                                      func() { metrics.Worker("a", nil) },
		"metrics: Client: option 1 is nil":                                 func() { metrics.Client("a", c, nil) },
		"observe: the name must not be empty":                              func() { metrics.Client("", c) },
		"metrics: WithMaxAge: the duration must not be negative, got -1ns": func() { metrics.WithMaxAge(-1) },
	} {
		require.PanicsWithValue(t, want, f)
	}
}

// A scrape of a zero Client or Worker does not panic.
func TestSources_OnesThatPanic(t *testing.T) {
	all := export(t, metrics.Client("not made", new(durable.Client)), metrics.Worker("not made", new(durable.Worker)))
	for _, got := range []map[string]any{all.Client["not made"], all.Worker["not made"]} {
		require.NotEmpty(t, got)
	}
}
