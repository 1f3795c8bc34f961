package stores

import (
	"context"
	"time"

	"github.com/tickless/tickless/durable/memstore"
)

// A task is what is scheduled.
type task struct {
	key  string
	due  time.Time
	body []byte
}

// A side is what is measured.
type side interface {
	// schedule returns when the tasks are acknowledged.
	schedule(ctx context.Context, tasks []task) error
	// work hands tasks that are due to handle, and reports them done, until stop is
	// called.
	work(handle func(body []byte)) (stop func() error, err error)
	// remaining returns how many tasks there are in any state.
	remaining(ctx context.Context) (int64, error)
	close() error
}

// sides are all, in the order of the table's columns.
var sides = []struct {
	name string
	open func(dir string) (side, error)
}{
	{"memstore", func(string) (side, error) { return newTickless(memstore.New(), nil), nil }},
	{"sqlitestore", openFile},
	{"table", openTable},
	{"redisstore", openRedis},
}
