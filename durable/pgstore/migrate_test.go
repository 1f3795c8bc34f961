package pgstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
)

// Several programs may start at the same time, and do so again.
func TestMigrate_Concurrent(t *testing.T) {
	pool := newPool(t, sharedServer(t).URL("postgres"))
	var all sync.WaitGroup
	made := make([]int, 8)
	for i := range made {
		all.Go(func() {
			steps, err := Migrate(context.Background(), pool, WithSchema("migrate"))
			if err != nil {
				t.Error(err)
			}
			made[i] = len(steps)
		})
	}
	all.Wait()
	total := 0
	for _, n := range made {
		total += n
	}
	require.Equal(t, len(Migrations()), total)
}

func TestMigrate_Refuses(t *testing.T) {
	pool, schema := newSchema(t)
	_, err := Migrate(t.Context(), pool, schema, WithShards(4))
	require.ErrorIs(t, err, store.ErrSchema)
	s := New(pool, schema, WithShards(4))
	defer s.Close()
	_, err = durable.New(s).Stats(t.Context())
	require.ErrorIs(t, err, store.ErrSchema)

	missing := New(pool, WithSchema("missing"))
	defer missing.Close()
	_, err = missing.Check(t.Context())
	require.ErrorIs(t, err, store.ErrSchema)
	require.ErrorContains(t, err, "run Migrate")

	c := newConfig("", []Option{schema})
	_, err = pool.Exec(t.Context(), c.sql(`INSERT INTO tickless.migrations (version) VALUES (1000)`))
	require.NoError(t, err)
	_, err = Migrate(t.Context(), pool, schema)
	require.ErrorIs(t, err, store.ErrSchema)
	newer := New(pool, schema)
	defer newer.Close()
	_, err = newer.Stats(t.Context(), 0)
	require.ErrorIs(t, err, store.ErrSchema)

	_, err = pool.Exec(t.Context(), `CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`)
	require.NoError(t, err)
	_, err = Migrate(t.Context(), newPool(t, sharedServer(t).URL("latin")))
	require.ErrorIs(t, err, store.ErrUnfit)
	require.ErrorContains(t, err, "UTF8")
}

// A role with the documented grants can do all that a Store does, and no more. The SQL of
// Migrations can be run by others.
func TestGrants(t *testing.T) {
	pool := newPool(t, sharedServer(t).URL("postgres"))
	schema := WithSchema("granted")
	exec := func(statement string) {
		_, err := pool.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err, statement)
	}
	exec(`CREATE SCHEMA granted`)
	for _, m := range Migrations(schema) {
		exec(m.SQL)
	}
	exec(`CREATE ROLE worker LOGIN; CREATE ROLE producer LOGIN; ` + Grants("worker", "producer", schema))
	as := func(role string) *Store {
		pool := newPool(t, fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres?sslmode=disable", role, sharedServer(t).Port))
		s := New(pool, schema)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	worker, producer := as("worker"), as("producer")
	c := durable.New(worker)
	keys := runWorker(t, c)
	require.NoError(t, producer.ScheduleTx(t.Context(), producer.pool, item("tx", durable.After(0))))
	require.Equal(t, "tx", <-keys)
	_, err := c.Schedule(t.Context(), item("k", durable.After(0)).Task, durable.After(0))
	require.NoError(t, err)
	require.Equal(t, "k", <-keys)
	_, err = c.Check(t.Context())
	require.NoError(t, err)
	require.NoError(t, func() error { _, err := worker.Repair(t.Context(), 0); return err }())

	_, err = durable.New(producer).Schedule(t.Context(), item("k", durable.After(0)).Task, durable.After(0))
	require.ErrorIs(t, err, store.ErrUnfit)
	require.ErrorIs(t, err, store.ErrNotDone)
	require.Equal(t, 1, strings.Count(err.Error(), store.ErrUnfit.Error()), err)
	_, err = Migrate(t.Context(), worker.pool, WithSchema("other"))
	require.ErrorIs(t, err, store.ErrUnfit)
}

// Workers of another process start a task at once, by a notification or by a probe.
func TestWait_OtherProcess(t *testing.T) {
	for _, opts := range [][]Option{{WithProbe(time.Minute)}, {WithPollOnly()}} {
		pool, schema := newSchema(t)
		opts = append(opts, schema)
		a, b := New(pool, opts...), New(pool, opts...)
		t.Cleanup(func() { require.NoError(t, a.Close()); require.NoError(t, b.Close()) })
		keys := runWorker(t, durable.New(b))
		for i := range 5 {
			key := fmt.Sprint("k", i)
			_, err := durable.New(a).Schedule(t.Context(), item(key, durable.After(0)).Task, durable.After(0))
			require.NoError(t, err)
			require.Equal(t, key, <-keys)
		}
	}
}
