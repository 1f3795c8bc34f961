package stores

import (
	"context"
	"time"

	"github.com/tickless/tickless/durable/memstore"
)

// A task is a task to schedule.
type task struct {
	key  string
	due  time.Time
	body []byte
}

// A side is one of the compared stores.
type side interface {
	// schedule returns when the tasks are acknowledged.
	schedule(ctx context.Context, tasks []task) error
	// work calls handle for due tasks and reports them done, until stop is called.
	work(handle func(body []byte)) (stop func() error, err error)
	// remaining returns how many tasks there are in any state.
	remaining(ctx context.Context) (int64, error)
	close() error
}

// sides are all sides, in the order of the table's columns.
var sides = []struct {
	name string
	open func(dir string) (side, error)
}{
	{"memstore", func(string) (side, error) { return newTickless(memstore.New(), nil), nil }},
	{"sqlitestore", openFile},
	{"table", openTable},
	{"redisstore", openRedis},
}
