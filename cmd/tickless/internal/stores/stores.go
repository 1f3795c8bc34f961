// Package stores opens the stores of durable tasks that the commands work on.
package stores

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable/pgstore"
	"github.com/tickless/tickless/durable/redisstore"
	"github.com/tickless/tickless/durable/sqlitestore"
	"github.com/tickless/tickless/durable/store"
)

// A Location says where a store is: in a file, on Redis or in PostgreSQL.
type Location struct {
	File      string
	URL       string // of Redis
	IsCluster bool
	Postgres  string // URL of PostgreSQL
	StoreName string // on Redis, or the schema in PostgreSQL; empty: the default
	Shards    int    // number of shards on a server; 0: the default
	// If ReadOnly is true, a file is opened for reading only.
	ReadOnly bool

	prefix string // of its flags
}

// Count returns how many stores l names. Only one can be opened.
func (l Location) Count() (n int) {
	for _, x := range []string{l.File, l.URL, l.Postgres} {
		if x != "" {
			n++
		}
	}
	return n
}

// Open opens the store. Errors in the background, which no call returns, are written to
// log.
func (l Location) Open(log io.Writer) (store.Store, func() error, error) {
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError}))
	if l.File != "" {
		opts := []sqlitestore.Option{sqlitestore.WithLogger(logger)}
		if l.ReadOnly {
			opts = append(opts, sqlitestore.WithReadOnly())
		}
		st, err := sqlitestore.Open(l.File, opts...)
		if err != nil {
			return nil, nil, err
		}
		return st, st.Close, nil
	}
	if l.Postgres != "" {
		pool, err := l.Pool()
		if err != nil {
			return nil, nil, err
		}
		st := pgstore.New(pool, append(l.PostgresOptions(), pgstore.WithLogger(logger))...)
		return st, func() error {
			defer pool.Close()
			return st.Close()
		}, nil
	}
	client, err := l.Client()
	if err != nil {
		return nil, nil, err
	}
	st := redisstore.New(client, append(l.redisOptions(), redisstore.WithLogger(logger))...)
	return st, func() error { return errors.Join(st.Close(), client.Close()) }, nil
}

// IsSame reports whether both locations are the same file, or have the same URL and name.
func (l Location) IsSame(x Location) bool {
	if l.File != "" && x.File != "" {
		a, errA := os.Stat(l.File)
		b, errB := os.Stat(x.File)
		return errA == nil && errB == nil && os.SameFile(a, b)
	}
	return l.File == "" && x.File == "" && l.URL == x.URL && l.Postgres == x.Postgres && l.StoreName == x.StoreName
}

// Pool returns a pool of connections to the PostgreSQL server.
func (l Location) Pool() (*pgxpool.Pool, error) {
	pool, err := pgxpool.New(context.Background(), l.Postgres)
	if err != nil {
		return nil, l.wrongURL("postgres", l.Postgres, err)
	}
	return pool, nil
}

func (l Location) redisOptions() (opts []redisstore.Option) {
	if l.StoreName != "" {
		opts = append(opts, redisstore.WithName(l.StoreName))
	}
	if l.Shards != 0 {
		opts = append(opts, redisstore.WithShards(l.Shards))
	}
	return opts
}

// PostgresOptions returns the options that the flags set.
func (l Location) PostgresOptions() (opts []pgstore.Option) {
	if l.StoreName != "" {
		opts = append(opts, pgstore.WithSchema(l.StoreName))
	}
	if l.Shards != 0 {
		opts = append(opts, pgstore.WithShards(l.Shards))
	}
	return opts
}

// Client returns a client of the Redis server.
func (l Location) Client() (redis.UniversalClient, error) {
	if l.IsCluster {
		o, err := redis.ParseClusterURL(l.URL)
		if err != nil {
			return nil, l.wrongURL("redis", l.URL, err)
		}
		return redis.NewClusterClient(redisstore.TuneCluster(o)), nil
	}
	o, err := redis.ParseURL(l.URL)
	if err != nil {
		return nil, l.wrongURL("redis", l.URL, err)
	}
	return redis.NewClient(o), nil
}
