package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore"
	"github.com/tickless/tickless/durable/store"
)

// silentLogger discards the log of go-redis, because calls return the same errors.
type silentLogger struct{}

func (silentLogger) Printf(context.Context, string, ...any) {}

// AddFlags adds the flags that say where the store is. Their names begin with a prefix.
func (l *Location) AddFlags(flags *pflag.FlagSet, prefix string) {
	flags.SortFlags = false
	flags.StringVar(&l.File, prefix+"file", "", "SQLite file of the store")
	l.AddServerFlags(flags, prefix)
}

// AddServerFlags adds the flags for a store on a server.
func (l *Location) AddServerFlags(flags *pflag.FlagSet, prefix string) {
	l.prefix = prefix
	flags.StringVar(&l.URL, prefix+"redis", "", "URL of a Redis server, such as redis://localhost:6379")
	flags.BoolVar(&l.IsCluster, prefix+"cluster", false, "the server is part of a Redis Cluster")
	flags.StringVar(&l.Postgres, prefix+"postgres", "", "URL of a PostgreSQL database, such as postgres://localhost/app")
	flags.StringVar(&l.StoreName, prefix+"name", "", "name of the store on Redis, or its schema in PostgreSQL (default: that of the store's package)")
	flags.IntVar(&l.Shards, prefix+"shards", 0, "number of shards of a store on a server (default: that of the store's package)")
}

// CheckAndOpen checks the flags and opens the store. If mustExist is true, it returns an
// error for a store that does not exist.
func (l Location) CheckAndOpen(ctx context.Context, log io.Writer, mustExist bool) (store.Store, func() error, error) {
	redis.SetLogger(silentLogger{})
	if err := l.Check(); err != nil {
		return nil, nil, err
	}
	if mustExist {
		if err := l.checkExists(ctx, log); err != nil {
			return nil, nil, err
		}
	}
	st, closeStore, err := l.Open(log)
	if err != nil {
		return nil, nil, err
	}
	if _, err := durable.New(st).Check(ctx); err != nil && !errors.Is(err, durable.ErrUnsafe) {
		return nil, nil, errors.Join(err, closeStore())
	}
	return st, closeStore, nil
}

// Check returns an error if the flags do not name one store, or one that no store's package
// accepts.
func (l Location) Check() (err error) {
	switch {
	case l.Count() != 1:
		return cli.UsageError{Err: fmt.Errorf("name the store with one of --%[1]sfile, --%[1]sredis and --%[1]spostgres", l.prefix)}
	case l.File != "" && (l.IsCluster || l.StoreName != "" || l.Shards != 0), l.IsCluster && l.URL == "":
		return cli.UsageError{Err: fmt.Errorf("--%[1]sname and --%[1]sshards are for a store on a server, and --%[1]scluster is for --%[1]sredis", l.prefix)}
	}
	defer func() {
		if v := recover(); v != nil { // an option that refuses its value
			_, text, _ := strings.Cut(fmt.Sprint(v), ": With")
			_, text, _ = strings.Cut(text, ": ")
			err = cli.UsageError{Err: errors.New(text)}
		}
	}()
	if l.Postgres != "" {
		l.PostgresOptions()
	} else {
		l.redisOptions()
	}
	return nil
}

// checkExists returns an error if the store does not exist. It opens the store for
// reading only: opening it for writing would create it.
func (l Location) checkExists(ctx context.Context, log io.Writer) error {
	if l.IsNewFile() {
		return fmt.Errorf("no such file: %s", l.File)
	}
	l.ReadOnly = true
	st, closeStore, err := l.Open(log)
	if err != nil {
		return err
	}
	if onRedis, ok := st.(*redisstore.Store); ok {
		var found bool
		if found, err = onRedis.Exists(ctx); err == nil && !found {
			err = fmt.Errorf("no store named %q on the server of --redis", cmp.Or(l.StoreName, redisstore.DefaultName))
		}
	}
	return errors.Join(err, closeStore())
}

// IsNewFile reports whether l names a file that does not exist yet.
func (l Location) IsNewFile() bool {
	if l.File == "" {
		return false
	}
	_, err := os.Lstat(l.File)
	return errors.Is(err, os.ErrNotExist)
}
