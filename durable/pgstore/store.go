package pgstore

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/batch"
	"github.com/tickless/tickless/durable/store/waiters"
)

// A Store keeps tasks in a PostgreSQL database. Make one with [New].
type Store struct {
	config
	pool          *pgxpool.Pool
	origin        string // names this Store in notifications
	shards        []*shard
	schemaChecked atomic.Bool
	waiters       waiters.Waiters
	watch         watch
	notifications chan struct{} // has an element if a notification is due
	closed        chan struct{}
	goroutines    sync.WaitGroup
}

// A shard has what a Store keeps about a shard of its tasks.
type shard struct {
	number int
	calls  *batch.Queue[*index]
	memory memory       // owned by the goroutine that serves the calls
	wakes  atomic.Int64 // Numbers.Wakes when the waiters were last woken
	// notifies says that other processes must be notified.
	notifies atomic.Bool
	horizon  atomic.Pointer[horizon]
}

// A horizon is a lower bound of what the column tx has in the inbox, so that reading the
// inbox does not meet dead rows. It holds until the server starts again: a standby that
// becomes the primary may have lower transaction ids.
type horizon struct{ from, server string }

var _ store.Store = (*Store)(nil)

// New returns a Store on a database whose tables [Migrate] has made. It does not connect:
// the first call checks the tables. New panics if pool is nil.
//
// The Store uses one connection of the pool for each shard that writes, one for each
// reader, and while workers run one of its own that listens.
func New(pool *pgxpool.Pool, opts ...Option) *Store {
	if pool == nil {
		panic("pgstore: New: nil Pool")
	}
	s := &Store{config: newConfig("New", opts), pool: pool, origin: rand.Text(), closed: make(chan struct{}), notifications: make(chan struct{}, 1)}
	if !s.pollOnly {
		s.goroutines.Go(s.runNotifications)
	}
	for i := range s.shardCount {
		x := &shard{number: i, calls: batch.New[*index](s.closed)}
		x.horizon.Store(&horizon{from: "0"})
		s.shards = append(s.shards, x)
		s.goroutines.Go(func() {
			x.calls.Serve(s.log, func(calls []*call) (bool, error) { return s.transact(x, calls) }, isDataError)
		})
	}
	return s
}

// Close closes the Store: all later and waiting calls return [store.ErrClosed], and Wait
// returns. Close waits for the current transactions. It does not close the pool.
func (s *Store) Close() error {
	s.watch.mu.Lock() // no watch starts after this
	first := s.waiters.Close()
	s.watch.mu.Unlock()
	if first {
		close(s.closed)
		s.goroutines.Wait()
	}
	return nil
}

// Shards returns the number of shards: see [WithShards].
func (s *Store) Shards() int { return len(s.shards) }

// Now returns the server's time.
func (s *Store) Now(ctx context.Context, _ int) (now store.Time, err error) {
	if err := s.checkOpen(ctx); err != nil {
		return 0, err
	}
	err = s.pool.QueryRow(ctx, s.sql(`SELECT tickless.clock()`)).Scan((*int64)(&now))
	return now, s.readError(ctx, err)
}

// checkOpen returns an error if the Store is closed, the context has ended or the tables
// do not fit.
func (s *Store) checkOpen(ctx context.Context) error {
	if s.waiters.Closed() {
		return store.ErrClosed
	}
	if err := store.Ended(ctx); err != nil {
		return err
	}
	return s.readError(ctx, s.checkSchema(ctx))
}

// readError wraps the error of a call that only reads.
func (s *Store) readError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return store.Ended(ctx)
	}
	return wrapError(err, false)
}
