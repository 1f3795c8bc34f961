package pgstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
)

func newStore(tb testing.TB, opts ...Option) (*Store, *durable.Client) {
	tb.Helper()
	pool, schema := newSchema(tb, opts...)
	s := New(pool, append(opts, schema)...)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s, durable.New(s)
}

func item(key string, w durable.When) durable.Item {
	return durable.Item{Task: durable.Task{Key: key, Handler: "h", Body: []byte("body of " + key)}, When: w}
}

// runWorker runs a worker whose handler h sends the keys, until the test ends.
func runWorker(t *testing.T, c *durable.Client) (keys chan string) {
	keys = make(chan string, 10_000)
	w := durable.NewWorker(c)
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		keys <- d.Key
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return keys
}

// Tasks exist when the transaction has committed, and never if it is rolled back. Meanwhile
// nobody waits.
func TestScheduleTx(t *testing.T) {
	for _, opts := range [][]Option{nil, {WithTxNotify()}, {WithPollOnly()}} {
		s, c := newStore(t, opts...)
		keys := runWorker(t, c)
		tx, err := s.pool.Begin(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.ScheduleTx(t.Context(), tx, item("a", durable.After(0)), item("later", durable.After(time.Hour))))
		_, err = c.Schedule(t.Context(), item("b", durable.After(0)).Task, durable.After(0))
		require.NoError(t, err, "another client's command")
		require.Equal(t, "b", <-keys)
		_, err = c.Get(t.Context(), "later")
		require.ErrorIs(t, err, durable.ErrNotFound)
		require.NoError(t, tx.Commit(t.Context()))
		info, err := c.Get(t.Context(), "later")
		require.NoError(t, err)
		require.Equal(t, "body of later", string(info.Task.Body))
		require.Equal(t, "a", <-keys)

		tx, err = s.pool.Begin(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.ScheduleTx(t.Context(), tx, item("never", durable.After(0))))
		require.NoError(t, tx.Rollback(t.Context()))
		_, err = c.Schedule(t.Context(), item("last", durable.After(0)).Task, durable.After(0))
		require.NoError(t, err)
		require.Equal(t, "last", <-keys)
		_, err = c.Get(t.Context(), "never")
		require.ErrorIs(t, err, durable.ErrNotFound)
	}
}

// A command comes after all that was committed before it, however much that is.
func TestScheduleTx_BeforeACommand(t *testing.T) {
	s, c := newStore(t)
	var items []durable.Item
	for i := range 2*maxDrained + 10 {
		items = append(items, item(fmt.Sprint("k", i), durable.After(time.Hour)))
	}
	items = append(items, item("last", durable.After(time.Hour)), item("last", durable.After(2*time.Hour)))
	require.NoError(t, pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error { return s.ScheduleTx(t.Context(), tx, items...) }))
	out, err := c.Reschedule(t.Context(), "last", durable.After(3*time.Hour))
	require.NoError(t, err)
	require.Equal(t, durable.Moved, out)
	st, err := c.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2*maxDrained+11, st.Pending)
	require.NoError(t, pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error { return s.ScheduleTx(t.Context(), tx, item("last", durable.After(0))) }))
	out, err = c.Cancel(t.Context(), "last")
	require.NoError(t, err)
	require.Equal(t, durable.Removed, out)
	st, err = c.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2*maxDrained+10, st.Pending)
}

// Transactions commit in another order than they insert.
func TestScheduleTx_CommitsLate(t *testing.T) {
	s, c := newStore(t)
	first, err := s.pool.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.ScheduleTx(t.Context(), first, item("first", durable.After(time.Hour))))
	for i := range 5 {
		key := fmt.Sprint("second", i)
		require.NoError(t, s.ScheduleTx(t.Context(), s.pool, item(key, durable.After(time.Hour))))
		_, err = c.Get(t.Context(), key)
		require.NoError(t, err)
	}
	require.NoError(t, first.Commit(t.Context()))
	_, err = c.Get(t.Context(), "first")
	require.NoError(t, err)
	require.NotEqual(t, "0", s.shards[0].horizon.Load().from)
}

func TestScheduleTx_DatabaseSQL(t *testing.T) {
	s, c := newStore(t)
	db := stdlib.OpenDBFromPool(s.pool)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, s.ScheduleTx(t.Context(), tx, item("k", durable.After(time.Hour))))
	require.NoError(t, tx.Commit())
	info, err := c.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "body of k", string(info.Task.Body))
	require.Panics(t, func() { _ = s.ScheduleTx(t.Context(), db.Stats(), item("k", durable.After(0))) })
}

// A row that cannot be scheduled becomes a dead letter. The others are scheduled.
func TestScheduleTx_BadRows(t *testing.T) {
	s, c := newStore(t)
	_, err := s.pool.Exec(t.Context(), s.sql(`INSERT INTO tickless.inbox (shard, id, handler, schedule, at) VALUES
		(0, 'nohandler', '', '', 1), (0, 'notime', 'h', '', -5), (0, '', 'h', '', 1), (0, repeat('k', 600), 'h', '', 1), (0, 'good', 'h', '', 1)`))
	require.NoError(t, err)
	st, err := c.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, []int64{1, 4}, []int64{st.Pending, st.Dead})
	e, err := s.Get(t.Context(), 0, "notime")
	require.NoError(t, err)
	require.Equal(t, store.Dead, e.State)
	require.Contains(t, e.Failures[0].Text, "out of range")
}

// A read returns although tasks come into the inbox all the time.
func TestScheduleTx_ReadsBesideMany(t *testing.T) {
	s, c := newStore(t)
	_, err := s.pool.Exec(t.Context(), s.sql(`CREATE FUNCTION tickless.refill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO tickless.inbox (shard, id, handler, schedule, at) VALUES (0, old.id || 'x', 'h', '', 1); RETURN old; END $$;
		CREATE TRIGGER refill AFTER DELETE ON tickless.inbox FOR EACH ROW EXECUTE FUNCTION tickless.refill()`), pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	require.NoError(t, s.ScheduleTx(t.Context(), s.pool, item("k", durable.After(time.Hour))))
	_, err = c.Get(t.Context(), "k")
	require.NoError(t, err)
}

// Check finds tasks of a program that thinks that the store has more shards.
func TestScheduleTx_OtherShards(t *testing.T) {
	pool, schema := newSchema(t)
	s, other := New(pool, schema), New(pool, schema, WithShards(64))
	t.Cleanup(func() { require.NoError(t, s.Close()); require.NoError(t, other.Close()) })
	health, err := s.Check(t.Context())
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(health.Warnings), "ScheduleTx")
	for i := range 10 {
		require.NoError(t, other.ScheduleTx(t.Context(), pool, item(fmt.Sprint("k", i), durable.After(0))))
	}
	health, err = s.Check(t.Context())
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(health.Warnings), "ScheduleTx")
}
