package pgstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
	"github.com/tickless/tickless/timertest"
)

// virtualTime makes the server's clock and the Stores' steady clock follow clk.
type virtualTime struct {
	t    *testing.T
	pool *pgxpool.Pool
	c    config
	clk  *timertest.Clock
}

func newVirtualTime(t *testing.T, pool *pgxpool.Pool, schema Option) *virtualTime {
	v := &virtualTime{t: t, pool: pool, c: newConfig("", []Option{schema}), clk: timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	v.exec(`CREATE TABLE tickless.test_clock (at bigint)`)
	v.exec(`INSERT INTO tickless.test_clock VALUES ($1)`, v.clk.Wall().UnixMicro())
	v.exec(`CREATE OR REPLACE FUNCTION tickless.clock() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT at FROM tickless.test_clock'`)
	return v
}

func (v *virtualTime) exec(statement string, args ...any) {
	_, err := v.pool.Exec(context.Background(), v.c.sql(statement), args...)
	require.NoError(v.t, err)
}

func (v *virtualTime) set() {
	v.exec(`UPDATE tickless.test_clock SET at = $1`, v.clk.Wall().UnixMicro())
}

func (v *virtualTime) advance(d time.Duration) {
	v.clk.Advance(d)
	v.set()
}

func (v *virtualTime) step(d time.Duration) {
	v.clk.SetWall(v.clk.Wall().Add(d))
	v.set()
}

// steady is an option for the Stores' steady clock.
func (v *virtualTime) steady() Option {
	return optionFunc(func(c *config) { c.steady = func() time.Duration { return time.Duration(v.clk.Now().UnixNano()) } })
}

// subject returns a Store with a virtual clock in a schema of its own.
func subject(t *testing.T) storetest.Subject {
	t.Parallel() // it waits for the server half of the time
	pool, schema := newSchema(t)
	v := newVirtualTime(t, pool, schema)
	var s *Store
	reopen := func(t *testing.T) store.Store {
		if s != nil {
			require.NoError(t, s.Close())
		}
		s = New(pool, schema, v.steady())
		return s
	}
	first := reopen(t)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return storetest.Subject{Store: first, Advance: v.advance, SetWall: v.step, Reopen: reopen, Steps: 500}
}

func TestStore(t *testing.T) { storetest.Run(t, subject) }

// TestStore_TwoStores runs storetest with two Stores on one schema, which take turns. Neither
// may rely on what it remembers.
func TestStore_TwoStores(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		t.Parallel()
		pool, schema := newSchema(t)
		v := newVirtualTime(t, pool, schema)
		var now *twoStores
		reopen := func(t *testing.T) store.Store {
			if now != nil {
				now.close(t)
			}
			// They share a steady clock, so that steps of the server's clock are noticed.
			shared := optionFunc(func(c *config) { c.steadyName = "shared" })
			now = &twoStores{Store: New(pool, schema, v.steady(), shared), other: New(pool, schema, v.steady(), shared)}
			return now
		}
		first := reopen(t)
		t.Cleanup(func() { now.close(t) })
		return storetest.Subject{Store: first, Advance: v.advance, SetWall: v.step, Reopen: reopen, Steps: 500, Twin: true}
	})
}

// A twoStores is two Stores that take turns call by call.
type twoStores struct {
	*Store
	other *Store
	n     atomic.Int64
}

func (b *twoStores) close(t *testing.T) {
	require.NoError(t, b.Store.Close())
	require.NoError(t, b.other.Close())
}

func (b *twoStores) next() *Store {
	if b.n.Add(1)%2 == 0 {
		return b.Store
	}
	return b.other
}

func (b *twoStores) Change(ctx context.Context, shard int, s store.Stamp, c store.Command) ([]store.Outcome, error) {
	return b.next().Change(ctx, shard, s, c)
}

func (b *twoStores) Do(ctx context.Context, shard int, s store.Stamp, r store.Round) (store.Answer, error) {
	return b.next().Do(ctx, shard, s, r)
}

// A task that becomes due long ago in the transaction of a claim is among those of the next.
func TestDo_HandsBackAnOldTask(t *testing.T) {
	s, c := newStore(t)
	put := func(key string, ago time.Duration) {
		_, err := c.Schedule(t.Context(), item(key, durable.When{}).Task, durable.At(time.Now().Add(-ago)))
		require.NoError(t, err)
	}
	stamp := store.Stamp{Sender: "w", Until: store.Farthest}
	claim := func(reports ...store.Report) store.Claimed {
		stamp.Number++
		a, err := s.Do(t.Context(), 0, stamp, store.Round{Reports: reports, Lease: time.Minute, MaxCrashes: 5,
			Claim: store.Claim{Asked: true, Max: 1, Handlers: []string{"h"}}})
		require.NoError(t, err)
		require.Len(t, a.Tasks, 1)
		return a.Tasks[0]
	}
	put("old", time.Minute)
	x := claim()
	put("older", time.Hour)
	require.Equal(t, "older", claim(store.Report{Lease: store.Lease{ID: x.ID, Token: x.Token}, End: store.HandBack, Due: x.Due}).ID)
	require.Equal(t, "old", claim().ID)
}

// A repeated claim begins its leases again, even if nothing else of the shard has changed. A Store
// that remembers the running task by its earlier lease must not write that one.
func TestDo_RepeatedThroughAnotherStore(t *testing.T) {
	pool, schema := newSchema(t)
	v := newVirtualTime(t, pool, schema)
	shared := optionFunc(func(c *config) { c.steadyName = "shared" })
	a, b := New(pool, schema, v.steady(), shared), New(pool, schema, v.steady(), shared)
	t.Cleanup(func() { require.NoError(t, a.Close()); require.NoError(t, b.Close()) })
	n := int64(0)
	put := func(key string, want store.Outcome) {
		n++
		i := item(key, durable.After(0))
		x, err := i.Stored()
		require.NoError(t, err)
		out, err := a.Change(t.Context(), 0, store.Stamp{Sender: "c", Number: n, Until: store.Farthest}, store.Command{Op: store.Schedule, Items: []store.Item{x}})
		require.NoError(t, err)
		require.Equal(t, []store.Outcome{want}, out)
	}
	claim := func(s *Store) {
		got, err := s.Do(t.Context(), 0, store.Stamp{Sender: "w", Number: 1, Until: store.Farthest},
			store.Round{Lease: time.Minute, MaxCrashes: 5, Claim: store.Claim{Asked: true, Max: 1, Handlers: []string{"h"}}})
		require.NoError(t, err)
		require.Len(t, got.Tasks, 1)
	}
	put("k", store.Created)
	claim(a)
	v.advance(time.Second)
	put("another", store.Created)
	claim(b) // the same time, and the same claim
	want, err := b.Get(t.Context(), 0, "k")
	require.NoError(t, err)
	put("k", store.Following)
	got, err := b.Get(t.Context(), 0, "k")
	require.NoError(t, err)
	require.Equal(t, want.At, got.At)
}

// counter counts the round trips of a pool.
type counter struct{ atomic.Int64 }

func (c *counter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.Add(1)
	return ctx
}

func (c *counter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (c *counter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A Store that is alone schedules new tasks in one round trip. If its guess is wrong, the command
// has the effect and the outcome that it should have.
func TestChange_Guesses(t *testing.T) {
	pool, schema := newSchema(t)
	var trips counter
	traced := pool.Config()
	traced.ConnConfig.Tracer = &trips
	tracedPool, err := pgxpool.NewWithConfig(t.Context(), traced)
	require.NoError(t, err)
	t.Cleanup(tracedPool.Close)
	a, b := New(tracedPool, schema), New(pool, schema)
	t.Cleanup(func() { require.NoError(t, a.Close()); require.NoError(t, b.Close()) })
	n := 0
	put := func(s *Store, key string) store.Outcome {
		n++
		i := item(key, durable.After(time.Hour))
		x, err := i.Stored()
		require.NoError(t, err)
		out, err := s.Change(t.Context(), 0, store.Stamp{Sender: s.origin, Number: int64(n), Until: store.Farthest}, store.Command{Op: store.Schedule, Items: []store.Item{x}})
		require.NoError(t, err)
		return out[0]
	}
	// until it has guessed, or for some commands if the machine is so busy that the times differ
	calm := func() (guessed bool) {
		for range 100 {
			before := trips.Load()
			require.Equal(t, store.Created, put(a, fmt.Sprint("calm", n)))
			if trips.Load() == before+1 {
				return true
			}
		}
		return false
	}
	require.True(t, calm())
	for name, change := range map[string]func(key string){
		"the task exists": func(key string) {
			put(a, key)
			calm()
		},
		"another Store has changed the shard": func(key string) { put(b, key) },
		"the task is in the inbox": func(key string) {
			require.NoError(t, a.ScheduleTx(t.Context(), pool, item(key, durable.After(time.Hour))))
		},
	} {
		calm()
		key := fmt.Sprint("k", n)
		change(key)
		require.Equal(t, store.Replaced, put(a, key), name)
	}
	// the same command again
	calm()
	n--
	require.Equal(t, store.Created, put(a, fmt.Sprint("calm", n)))
	st, err := a.Stats(t.Context(), 0)
	require.NoError(t, err)
	var rows int64
	require.NoError(t, pool.QueryRow(t.Context(), a.sql(`SELECT count(*) FROM tickless.tasks`)).Scan(&rows))
	require.Equal(t, rows, st.Pending)
}
