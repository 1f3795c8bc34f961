// Command cost executes the operations of diskstore whose complexity is promised, for
// the test beside it. What Pebble does for them is not counted, but how often it is asked.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/diskstore"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/internal/cost"
	"github.com/tickless/tickless/timertest"
)

func main() { cost.Main(ops) }

var ctx = context.Background()

// must is for what cannot fail here.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// queue returns a store with a shard, whose clock stands still, and n tasks that are due
// some hours later, or since some hours.
func queue(n int, due bool) (*durable.Client, *diskstore.Store) {
	clk := timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	// The program's own folder is the test's, which removes it.
	dir := must(os.MkdirTemp(os.Args[1], "store"))
	st := must(diskstore.Open(dir+"/store", diskstore.WithClock(clk), diskstore.WithShards(1), diskstore.WithSync(time.Minute), diskstore.WithLogger(quiet)))
	c := durable.New(st)
	var items []durable.Item
	for i := range n {
		d := time.Hour + time.Duration(i)*time.Millisecond
		if due {
			d = -d
		}
		items = append(items, durable.Item{Task: task(i), When: durable.At(clk.Now().Add(d))})
	}
	must(c.ScheduleBatch(ctx, items))
	return c, st
}

func task(i int) durable.Task { return durable.Task{Key: fmt.Sprintf("%08d", i), Handler: "h"} }

// commands schedules, moves and cancels a task.
func commands(c *durable.Client, i int, when durable.When) {
	x := task(10_000_000 + i)
	must(c.Schedule(ctx, x, when))
	must(c.Reschedule(ctx, x.Key, when))
	must(c.Cancel(ctx, x.Key))
}

// past is before all that queue has.
var past = durable.At(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))

// round claims a task and, with the next command, reports that it is done.
func round(st *diskstore.Store, i int) {
	do := func(r store.Round, number int64) store.Answer {
		r.Lease, r.MaxCrashes = time.Minute, 3
		return must(st.Do(ctx, 0, store.Stamp{Sender: "worker", Number: number}, r))
	}
	a := do(store.Round{Claim: store.Claim{Asked: true, Max: 1, Handlers: []string{"h"}}}, int64(2*i+1))
	x := a.Tasks[0]
	do(store.Round{Reports: []store.Report{{Hold: store.Hold{ID: x.ID, Token: x.Token}, Due: x.Due, End: store.Done}}}, int64(2*i+2))
}

const few, many = 512, 16384

var ops = []cost.Op{
	{Name: "diskstore: Schedule, Reschedule and Cancel, beside n that wait", Growth: cost.Constant, From: few, To: many, Prepare: func(n int) func(int) {
		c, _ := queue(n, false)
		return func(i int) { commands(c, i, durable.After(time.Hour)) }
	}},
	{Name: "diskstore: Schedule, Reschedule and Cancel, beside n that are due", Growth: cost.Logarithmic, From: few, To: many, Prepare: func(n int) func(int) {
		c, _ := queue(n, true)
		return func(i int) { commands(c, i, past) }
	}},
	{Name: "diskstore: claim and report, beside n that are due", Growth: cost.Logarithmic, From: few, To: many, Prepare: func(n int) func(int) {
		_, st := queue(n, true)
		return func(i int) { round(st, i) }
	}},
	{Name: "diskstore: claim and report, after n that were finished", Growth: cost.Constant, From: few, To: many, Prepare: func(n int) func(int) {
		_, st := queue(n+300, true)
		for i := range n {
			round(st, i)
		}
		return func(i int) { round(st, n+i) }
	}},
}
