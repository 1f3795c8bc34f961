package pgstore

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

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
		return storetest.Subject{Store: first, Advance: v.advance, SetWall: v.step, Reopen: reopen, Steps: 500}
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
