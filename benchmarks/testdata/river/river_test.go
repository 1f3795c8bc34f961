// Package river compares durable/pgstore with River on the same server. River needs a later
// Go than this repository, so this is a module in testdata, which no target builds: run
//
//	cd benchmarks/testdata/river && GOWORK=off go test -bench .
package river

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/pgstore"
	"github.com/tickless/tickless/durable/pgstore/pgtest"
)

const (
	jobs  = 20_000
	batch = 1000 // jobs in an insert
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// A side is one of the compared queues, on an empty database.
type side interface {
	insert(ctx context.Context, bodies [][]byte) error
	// work handles all jobs with at most n handlers at a time. It returns when the database
	// says that all are done.
	work(ctx context.Context, n int) error
}

// BenchmarkWork inserts jobs in batches, and then works them.
func BenchmarkWork(b *testing.B) {
	for _, workers := range []int{100, 1000} {
		for _, x := range []struct {
			name string
			open func(ctx context.Context, pool *pgxpool.Pool) (side, error)
		}{{"pgstore", openPgstore}, {"river", openRiver}} {
			b.Run(fmt.Sprintf("workers=%d/impl=%s", workers, x.name), func(b *testing.B) {
				server := pgtest.Start(b, "shared_buffers=512MB", "max_wal_size=4GB")
				c, err := pgxpool.ParseConfig(server.URL("postgres"))
				if err != nil {
					b.Fatal(err)
				}
				c.MaxConns = 16
				pool, err := pgxpool.NewWithConfig(b.Context(), c)
				if err != nil {
					b.Fatal(err)
				}
				defer pool.Close()
				s, err := x.open(b.Context(), pool)
				if err != nil {
					b.Fatal(err)
				}
				bodies := make([][]byte, batch)
				for i := range bodies {
					bodies[i] = make([]byte, 256)
				}
				begin := time.Now()
				for range jobs / batch {
					if err := s.insert(b.Context(), bodies); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(jobs/time.Since(begin).Seconds(), "inserted/s")
				begin = time.Now()
				if err := s.work(b.Context(), workers); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(jobs/time.Since(begin).Seconds(), "worked/s")
				b.ReportMetric(0, "ns/op") // 0 hides it
			})
		}
	}
}

type tickless struct {
	client *durable.Client
	next   int
}

func openPgstore(ctx context.Context, pool *pgxpool.Pool) (side, error) {
	_, err := pgstore.Migrate(ctx, pool)
	return &tickless{client: durable.New(pgstore.New(pool, pgstore.WithLogger(quiet())), durable.WithLogger(quiet()))}, err
}

func (x *tickless) insert(ctx context.Context, bodies [][]byte) error {
	items := make([]durable.Item, len(bodies))
	for i, b := range bodies {
		x.next++
		items[i] = durable.Item{Task: durable.Task{Key: fmt.Sprint("job-", x.next), Handler: "h", Body: b}, When: durable.After(0)}
	}
	_, err := x.client.ScheduleBatch(ctx, items)
	return err
}

func (x *tickless) work(ctx context.Context, n int) error {
	w := durable.NewWorker(x.client, durable.WithConcurrency(n))
	handled, all := new(atomic.Int64), make(chan struct{})
	w.Handle("h", func(context.Context, durable.Delivery) error {
		if handled.Add(1) == jobs {
			close(all)
		}
		return nil
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()
	<-all
	for {
		st, err := x.client.Stats(ctx)
		if err != nil {
			return err
		}
		if st.Pending+st.Running == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := w.Shutdown(ctx); err != nil {
		return err
	}
	return <-ended
}

type args struct{ Body []byte }

func (args) Kind() string { return "handler" }

type riverSide struct {
	pool   *pgxpool.Pool
	driver *riverpgxv5.Driver
}

func openRiver(ctx context.Context, pool *pgxpool.Pool) (side, error) {
	driver := riverpgxv5.New(pool)
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet()})
	if err != nil {
		return nil, err
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return &riverSide{pool, driver}, err
}

// client returns a client with the pauses of River's own benchmark.
func (x *riverSide) client(n int, work func()) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[args]) error {
		work()
		return nil
	}))
	return river.NewClient(x.driver, &river.Config{
		Logger: quiet(), Workers: workers, FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: n}},
	})
}

func (x *riverSide) insert(ctx context.Context, bodies [][]byte) error {
	c, err := x.client(1, func() {})
	if err != nil {
		return err
	}
	params := make([]river.InsertManyParams, len(bodies))
	for i, b := range bodies {
		params[i].Args = args{b}
	}
	_, err = c.InsertManyFast(ctx, params)
	return err
}

func (x *riverSide) work(ctx context.Context, n int) error {
	handled, all := new(atomic.Int64), make(chan struct{})
	c, err := x.client(n, func() {
		if handled.Add(1) == jobs {
			close(all)
		}
	})
	if err != nil {
		return err
	}
	if err := c.Start(context.Background()); err != nil {
		return err
	}
	<-all
	for left := 1; left > 0; time.Sleep(time.Millisecond) {
		if err := x.pool.QueryRow(ctx, `SELECT count(*) FROM river_job WHERE state <> 'completed'`).Scan(&left); err != nil {
			return err
		}
	}
	return c.Stop(ctx)
}
