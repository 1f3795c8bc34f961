package stores

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tickless/tickless/durable/pgstore"
	"github.com/tickless/tickless/durable/pgstore/pgtest"
	"github.com/tickless/tickless/durable/store"
)

// newPool starts a server with the default settings, except for its memory, and returns a
// pool of 16 connections.
func newPool(tb testing.TB) (*pgxpool.Pool, error) {
	server := pgtest.Start(tb, "shared_buffers=512MB", "max_wal_size=4GB")
	c, err := pgxpool.ParseConfig(server.URL("postgres"))
	if err != nil {
		return nil, err
	}
	c.MaxConns = 16
	return pgxpool.NewWithConfig(context.Background(), c)
}

func openPostgres(tb testing.TB, _ string) (side, error) {
	_, _, x, err := newPostgres(tb)
	return x, err
}

func newPostgres(tb testing.TB) (*pgxpool.Pool, *pgstore.Store, side, error) {
	pool, err := newPool(tb)
	if err != nil {
		return nil, nil, nil, err
	}
	if _, err := pgstore.Migrate(context.Background(), pool); err != nil {
		return nil, nil, nil, err
	}
	st := pgstore.New(pool, pgstore.WithLogger(quiet()))
	return pool, st, newTickless(st, func() error {
		err := st.Close()
		pool.Close()
		return err
	}), nil
}

// pgTable keeps tasks in a PostgreSQL table, as users write it themselves: SKIP LOCKED, one
// statement for many tasks, and a pipeline for the statements of a worker.
type pgTable struct {
	pool *pgxpool.Pool
	wake chan struct{} // signals a task that is due before nextDue
	mu   sync.Mutex
	next time.Time // until when the worker sleeps
}

const pgSchema = `
	CREATE TABLE tasks (
		id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		key      text NOT NULL UNIQUE,
		due      bigint NOT NULL,
		lease    bigint,
		token    bigint NOT NULL DEFAULT 0,
		attempts int NOT NULL DEFAULT 0,
		handler  text NOT NULL,
		body     bytea
	);
	CREATE INDEX pending ON tasks (due) WHERE lease IS NULL;
	CREATE INDEX running ON tasks (lease) WHERE lease IS NOT NULL;`

const (
	pgInsert = `INSERT INTO tasks (key, due, handler, body) SELECT key, due, 'h', body FROM unnest($1::text[], $2::bigint[], $3::bytea[]) t(key, due, body)
		ON CONFLICT (key) DO UPDATE SET due = excluded.due, handler = excluded.handler, body = excluded.body, attempts = 0`
	pgClaim = `UPDATE tasks SET lease = $1, token = token + 1, attempts = attempts + 1 WHERE id = ANY (ARRAY(
			SELECT id FROM tasks WHERE lease IS NULL AND due <= $2 ORDER BY due LIMIT $3 FOR UPDATE SKIP LOCKED))
		RETURNING id, token, body`
	pgFinish = `DELETE FROM tasks t USING unnest($1::bigint[], $2::bigint[]) x(id, token) WHERE t.id = x.id AND t.token = x.token`
	pgNext   = `SELECT coalesce(min(due), 0) FROM tasks WHERE lease IS NULL`
)

func openPgTable(tb testing.TB, _ string) (side, error) {
	pool, err := newPool(tb)
	if err != nil {
		return nil, err
	}
	_, err = pool.Exec(context.Background(), pgSchema, pgx.QueryExecModeSimpleProtocol)
	return &pgTable{pool: pool, wake: make(chan struct{}, 1)}, err
}

func (x *pgTable) schedule(ctx context.Context, tasks []task) error {
	for len(tasks) > 0 {
		chunk := tasks[:min(250, len(tasks))] // a batch of durable has as many
		tasks = tasks[len(chunk):]
		var keys []string
		var dues []int64
		var bodies [][]byte
		first := chunk[0].due
		for _, t := range chunk {
			keys, dues, bodies = append(keys, t.key), append(dues, t.due.UnixMicro()), append(bodies, t.body)
			if t.due.Before(first) {
				first = t.due
			}
		}
		if _, err := x.pool.Exec(ctx, pgInsert, keys, dues, bodies); err != nil {
			return err
		}
		x.mu.Lock()
		if first.Before(x.next) {
			select {
			case x.wake <- struct{}{}:
			default:
			}
		}
		x.mu.Unlock()
	}
	return nil
}

// work claims a batch of tasks, handles it, then claims the next batch. Each claim also
// deletes the previous batch.
func (x *pgTable) work(handle func(body []byte)) (func() error, error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		var ids, tokens []int64
		for ctx.Err() == nil {
			now := time.Now()
			x.mu.Lock()
			x.next = now.Add(time.Hour)
			x.mu.Unlock()
			var b pgx.Batch
			b.Queue("BEGIN")
			b.Queue(pgFinish, ids, tokens)
			ids, tokens = nil, nil
			var bodies [][]byte
			b.Queue(pgClaim, now.Add(30*time.Second).UnixMicro(), now.UnixMicro(), 100).Query(func(rows pgx.Rows) error {
				var id, token int64
				var body []byte
				_, err := pgx.ForEachRow(rows, []any{&id, &token, &body}, func() error {
					ids, tokens, bodies = append(ids, id), append(tokens, token), append(bodies, append([]byte(nil), body...))
					return nil
				})
				return err
			})
			var next int64
			b.Queue(pgNext).QueryRow(func(row pgx.Row) error { return row.Scan(&next) })
			b.Queue("COMMIT")
			if err := x.pool.SendBatch(context.Background(), &b).Close(); err != nil {
				ended <- err
				return
			}
			for _, body := range bodies {
				handle(body)
			}
			if len(ids) > 0 {
				continue
			}
			wait := time.Hour
			if next > 0 {
				wait = time.Until(time.UnixMicro(next))
			}
			x.mu.Lock()
			x.next = time.Now().Add(wait)
			x.mu.Unlock()
			select {
			case <-time.After(wait):
			case <-x.wake:
			case <-ctx.Done():
			}
		}
		ended <- nil
	}()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

func (x *pgTable) remaining(ctx context.Context) (n int64, err error) {
	err = x.pool.QueryRow(ctx, `SELECT count(*) FROM tasks`).Scan(&n)
	return n, err
}

func (x *pgTable) close() error {
	x.pool.Close()
	return nil
}

// BenchmarkPostgresSnapshot schedules tasks that are due at once, and works them, while an old
// snapshot keeps all dead rows. It compares the last fifth of a minute with the first.
func BenchmarkPostgresSnapshot(b *testing.B) {
	span := choose(time.Second, time.Minute)
	for b.Loop() {
		pool, _, x, err := newPostgres(b)
		if err != nil {
			b.Fatal(err)
		}
		old, err := pool.BeginTx(b.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := old.Exec(b.Context(), `SELECT count(*) FROM tickless.tasks`); err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		var handled [6]atomic.Int64 // in each fifth, and after the last
		stop := work(b, x, func([]byte) { handled[min(5, 5*time.Since(begin)/span)].Add(1) })
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for time.Since(begin) < span {
					if err := x.schedule(b.Context(), tasks(8, time.Now)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		stop()
		fifth := (span / 5).Seconds()
		b.ReportMetric(float64(handled[0].Load())/fifth, "first-tasks/s")
		b.ReportMetric(float64(handled[4].Load())/fifth, "last-tasks/s")
		var size int64
		if err := pool.QueryRow(b.Context(), `SELECT pg_total_relation_size('tickless.tasks') + pg_total_relation_size('tickless.versions')`).Scan(&size); err != nil {
			b.Fatal(err)
		}
		total := int64(0)
		for i := range handled {
			total += handled[i].Load()
		}
		b.ReportMetric(float64(size)/float64(max(1, total)), "B/task")
		_ = old.Rollback(context.Background())
		if err := x.close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkStoreClaim claims 100 due tasks at a time. Each claim also finishes those before. It
// does without a worker of package durable.
func BenchmarkStoreClaim(b *testing.B) {
	n := choose(500, 20_000)
	bench := func(b *testing.B, open func() (side, func() error, error)) {
		for b.Loop() {
			x, run, err := open()
			if err != nil {
				b.Fatal(err)
			}
			fill(b, x, tasks(n, func() time.Time { return time.Now().Add(-rand.N(time.Minute)) }))
			begin := time.Now()
			if err := run(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(n)/time.Since(begin).Seconds(), "tasks/s")
			if left := remaining(b, x); left > 0 {
				b.Fatalf("%d tasks are left", left)
			}
			if err := x.close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(0, "ns/op")
	}
	b.Run("impl=pgstore", func(b *testing.B) {
		bench(b, func() (side, func() error, error) {
			_, st, x, err := newPostgres(b)
			return x, func() error { return claimAll(b.Context(), st, n) }, err
		})
	})
	b.Run("impl=pgtable", func(b *testing.B) {
		bench(b, func() (side, func() error, error) {
			x, err := openPgTable(b, "")
			return x, func() error {
				handled, all := 0, make(chan struct{})
				stop, err := x.work(func([]byte) {
					if handled++; handled == n {
						close(all)
					}
				})
				if err != nil {
					return err
				}
				<-all
				for remaining(b, x) > 0 {
					time.Sleep(time.Millisecond)
				}
				return stop()
			}, err
		})
	})
}

// claimAll claims and finishes n tasks.
func claimAll(ctx context.Context, st store.Store, n int) error {
	stamp := store.Stamp{Sender: "worker", Until: store.Farthest}
	r := store.Round{Claim: store.Claim{Asked: true, Max: 100, Handlers: []string{"h"}}, Lease: 30 * time.Second, MaxCrashes: 5}
	for done := 0; done < n; {
		stamp.Number++
		a, err := st.Do(ctx, 0, stamp, r)
		if err != nil {
			return err
		}
		done += len(r.Reports)
		r.Reports = nil
		for _, t := range a.Tasks {
			r.Reports = append(r.Reports, store.Report{Lease: store.Lease{ID: t.ID, Token: t.Token}, End: store.Done, Due: t.Due})
		}
	}
	return nil
}

// fillTickless makes rows like those of tasks that wait for a time within 30 days.
const fillTickless = `INSERT INTO tickless.tasks SELECT 0, 'order-' || substr(md5(i::text), 1, 16), 1, tickless.clock() + 3600000000 + (random() * 30 * 86400e6)::bigint,
	'h', '', decode(repeat('00', 280), 'hex'), 0, 0, 0, 0, NULL, false, 0, 1, '' FROM generate_series(1, $1::int) i`

// BenchmarkPostgresLarge measures commands and pages beside a million pending tasks, or beside
// those of the database TICKLESS_POSTGRES.
func BenchmarkPostgresLarge(b *testing.B) {
	url := os.Getenv("TICKLESS_POSTGRES")
	pool, err := (*pgxpool.Pool)(nil), error(nil)
	if url != "" {
		pool, err = pgxpool.New(b.Context(), url)
	} else if pool, err = newPool(b); err == nil {
		if _, err = pgstore.Migrate(b.Context(), pool); err == nil {
			_, err = pool.Exec(b.Context(), fillTickless, choose(1000, 1_000_000))
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	st := pgstore.New(pool, pgstore.WithLogger(quiet()))
	defer st.Close()
	ms := func(f func(i int) error) (p50, p99 float64) {
		var all []time.Duration
		for i := range choose(10, 300) {
			begin := time.Now()
			if err := f(i); err != nil {
				b.Fatal(err)
			}
			all = append(all, time.Since(begin))
		}
		slices.Sort(all)
		return float64(all[len(all)/2]) / 1e6, float64(all[len(all)*99/100]) / 1e6
	}
	for b.Loop() {
		x := newTickless(st, nil)
		p50, p99 := ms(func(int) error {
			return x.schedule(b.Context(), tasks(1, func() time.Time { return time.Now().Add(time.Hour) }))
		})
		b.ReportMetric(p50, "schedule-p50-ms")
		b.ReportMetric(p99, "schedule-p99-ms")
		p50, p99 = ms(func(i int) error {
			p, err := st.List(b.Context(), 0, store.Filter{Prefix: fmt.Sprintf("order-%03x", i)}, store.Cursor{}, 100)
			if err == nil && len(p.Entries) == 0 && !testing.Short() {
				return errors.New("the page is empty")
			}
			return err
		})
		b.ReportMetric(p50, "prefix-p50-ms")
		b.ReportMetric(p99, "prefix-p99-ms")
		p50, p99 = ms(func(int) error {
			_, err := st.List(b.Context(), 0, store.Filter{}, store.Cursor{}, 100)
			return err
		})
		b.ReportMetric(p50, "page-p50-ms")
		b.ReportMetric(p99, "page-p99-ms")
	}
	b.ReportMetric(0, "ns/op")
}
