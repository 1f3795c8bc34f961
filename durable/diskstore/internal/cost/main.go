// Command cost executes the operations of diskstore whose complexity is promised, for
// the test beside it. What Pebble does for them is not counted, but how often it is asked.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/diskstore"
	"github.com/tickless/tickless/durable/internal/cost/tasks"
	"github.com/tickless/tickless/internal/cost"
	"github.com/tickless/tickless/timertest"
)

func main() { cost.Main(ops) }

var ctx = context.Background()

// queue returns a store with a shard, whose clock stands still, and n tasks that are due
// some hours later, or since some hours.
func queue(n int, due bool) (*durable.Client, *diskstore.Store) {
	clk := timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	// The program's own folder is the test's, which removes it.
	dir := tasks.Must(os.MkdirTemp(os.Args[1], "store"))
	st := tasks.Must(diskstore.Open(dir+"/store", diskstore.WithClock(clk), diskstore.WithShards(1), diskstore.WithSync(time.Minute), diskstore.WithLogger(quiet)))
	c := durable.New(st)
	var items []durable.Item
	for i := range n {
		d := time.Hour + time.Duration(i)*time.Millisecond
		if due {
			d = -d
		}
		items = append(items, durable.Item{Task: tasks.New(i), When: durable.At(clk.Now().Add(d))})
	}
	tasks.Must(c.ScheduleBatch(ctx, items))
	return c, st
}

const few, many = 512, 16384

var ops = []cost.Op{
	{Name: "diskstore: Schedule, Reschedule and Cancel, beside n that wait", Growth: cost.Constant, From: few, To: many, Prepare: func(n int) func(int) {
		c, _ := queue(n, false)
		return func(i int) { tasks.Commands(c, i, durable.After(time.Hour)) }
	}},
	{Name: "diskstore: Schedule, Reschedule and Cancel, beside n that are due", Growth: cost.Logarithmic, From: few, To: many, Prepare: func(n int) func(int) {
		c, _ := queue(n, true)
		return func(i int) { tasks.Commands(c, i, tasks.Past) }
	}},
	{Name: "diskstore: claim and report, beside n that are due", Growth: cost.Logarithmic, From: few, To: many, Prepare: func(n int) func(int) {
		_, st := queue(n, true)
		return func(i int) { tasks.Round(st, i) }
	}},
	{Name: "diskstore: claim and report, after n that were finished", Growth: cost.Constant, From: few, To: many, Prepare: func(n int) func(int) {
		_, st := queue(n+300, true)
		for i := range n {
			tasks.Round(st, i)
		}
		return func(i int) { tasks.Round(st, n+i) }
	}},
}
