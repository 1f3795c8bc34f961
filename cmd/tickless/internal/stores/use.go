package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore"
	"github.com/tickless/tickless/durable/store"
)

// quiet keeps go-redis from writing what comes back as an error as well.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// AddFlags adds the flags that name the place.
func (p *Place) AddFlags(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&p.File, "file", "", "file of the store, of SQLite")
	flags.StringVar(&p.URL, "redis", "", "URL of a Redis server, such as redis://localhost:6379")
	flags.BoolVar(&p.Cluster, "cluster", false, "the server is one of a Redis Cluster")
	flags.StringVar(&p.Name, "name", "", "name of the store on Redis (default: that of package redisstore)")
	flags.IntVar(&p.Shards, "shards", 0, "number of shards of a store on Redis (default: that of package redisstore)")
}

// Use checks the flags and opens the store, which must be there if exists is set.
func (p Place) Use(ctx context.Context, log io.Writer, exists bool) (store.Store, func() error, error) {
	redis.SetLogger(quiet{})
	if n := p.Shards; n < 0 || n > 1024 || n&(n-1) != 0 {
		return nil, nil, cli.UsageError{Err: fmt.Errorf("the number of shards must be a power of two up to 1024, not %d", n)}
	}
	if (p.File == "") == (p.URL == "") {
		return nil, nil, cli.UsageError{Err: errors.New("the store must be named, by --file or by --redis")}
	}
	if err := named(p.Name); err != nil {
		return nil, nil, cli.UsageError{Err: err}
	}
	if exists {
		if err := p.exists(ctx, log); err != nil {
			return nil, nil, err
		}
	}
	st, closeStore, err := p.Open(log)
	if err != nil {
		return nil, nil, err
	}
	if _, err := durable.New(st).Check(ctx); err != nil && !errors.Is(err, durable.ErrUnsafe) {
		return nil, nil, errors.Join(err, closeStore())
	}
	return st, closeStore, nil
}

// named returns an error for what redisstore takes for no name.
func named(name string) (err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%q is no name of a store: it has 1 to 64 bytes, without braces, blanks and control characters", name)
		}
	}()
	if name != "" {
		redisstore.WithName(name)
	}
	return nil
}

// exists returns an error if no store is there. To open one for writing makes it.
func (p Place) exists(ctx context.Context, log io.Writer) error {
	if p.IsNew() {
		return fmt.Errorf("there is no file %s", p.File)
	}
	p.ReadOnly = true
	st, closeStore, err := p.Open(log)
	if err != nil {
		return err
	}
	if on, ok := st.(*redisstore.Store); ok {
		var there bool
		if there, err = on.Exists(ctx); err == nil && !there {
			err = fmt.Errorf("there is no store named %q on the server at %s", cmp.Or(p.Name, redisstore.DefaultName), Shown(p.URL))
		}
	}
	return errors.Join(err, closeStore())
}

// IsNew reports whether a file is named that is not there.
func (p Place) IsNew() bool {
	if p.File == "" {
		return false
	}
	_, err := os.Lstat(p.File)
	return errors.Is(err, os.ErrNotExist)
}
