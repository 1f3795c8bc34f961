// Package stores opens the stores of durable tasks that the commands work on.
package stores

import (
	"errors"
	"io"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable/redisstore"
	"github.com/tickless/tickless/durable/sqlitestore"
	"github.com/tickless/tickless/durable/store"
)

// A Location says where a store is: in a file or on Redis.
type Location struct {
	File      string
	URL       string
	IsCluster bool
	StoreName string // on Redis; empty: the default
	Shards    int    // number of shards on Redis; 0: the default
	// If ReadOnly is true, a file is opened for reading only.
	ReadOnly bool
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
	client, err := l.Client()
	if err != nil {
		return nil, nil, err
	}
	opts := []redisstore.Option{redisstore.WithLogger(logger)}
	if l.StoreName != "" {
		opts = append(opts, redisstore.WithName(l.StoreName))
	}
	if l.Shards > 0 {
		opts = append(opts, redisstore.WithShards(l.Shards))
	}
	st := redisstore.New(client, opts...)
	return st, func() error { return errors.Join(st.Close(), client.Close()) }, nil
}

// Client returns a client of the Redis server.
func (l Location) Client() (redis.UniversalClient, error) {
	if l.IsCluster {
		o, err := redis.ParseClusterURL(l.URL)
		if err != nil {
			return nil, errorWithoutSecrets(l.URL, err)
		}
		return redis.NewClusterClient(redisstore.TuneCluster(o)), nil
	}
	o, err := redis.ParseURL(l.URL)
	if err != nil {
		return nil, errorWithoutSecrets(l.URL, err)
	}
	return redis.NewClient(o), nil
}
