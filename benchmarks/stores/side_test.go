package stores

import (
	"context"
	"testing"
	"time"

	"github.com/tickless/tickless/durable/memstore"
)

type task struct {
	key  string
	due  time.Time
	body []byte
}

// A side is one of the compared stores.
type side interface {
	// schedule schedules tasks and waits until they are acknowledged.
	schedule(ctx context.Context, tasks []task) error
	// work starts a worker. It calls handle for due tasks, then deletes them, until stop
	// is called.
	work(handle func(body []byte)) (stop func() error, err error)
	// remaining returns how many tasks the store contains, in any state.
	remaining(ctx context.Context) (int64, error)
	close() error
}

// sides are the compared stores, in the order of the table's columns.
var sides = []struct {
	name string
	open func(tb testing.TB, dir string) (side, error)
}{
	{"memstore", func(testing.TB, string) (side, error) { return newTickless(memstore.New(), nil), nil }},
	{"sqlitestore", openFile},
	{"table", openTable},
	{"redisstore", openRedis},
	{"pgstore", openPostgres},
	{"pgtable", openPgTable},
}
