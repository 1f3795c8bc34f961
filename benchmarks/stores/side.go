package main

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
	// called. It is nil for a side that does not.
	work(handle func(body []byte)) (stop func() error, err error)
	// left returns how many tasks there are in any state.
	left(ctx context.Context) (int64, error)
	close() error
}

// sides are all, in the order of the table's columns.
var sides = []struct {
	name   string
	open   func(dir string) (side, error)
	worker bool // it can work
}{
	{"memory", func(string) (side, error) { return newTickless(memstore.New(), nil), nil }, true},
	{"file", openFile, true},
	{"redis", openRedis, true},
	{"table", openTable, true},
}

func sideNames() (names []string) {
	for _, s := range sides {
		names = append(names, s.name)
	}
	return names
}
