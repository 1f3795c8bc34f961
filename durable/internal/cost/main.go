// Command cost executes the operations of package durable and of memstore whose
// complexity is promised, for the test beside it.
package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/internal/cost/tasks"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/internal/cost"
	"github.com/tickless/tickless/timertest"
)

func main() { cost.Main(ops) }

var ops = slices.Concat(clientOps, storeOps)

var ctx = context.Background()

func check(err error) { tasks.Must(0, err) }

// queue returns a store with a shard, whose clock stands still, and n tasks: of some
// hours later, or due one after the other.
func queue(n int, due bool, opts ...memstore.Option) (*durable.Client, *memstore.Store) {
	clk := timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	st := memstore.New(append([]memstore.Option{memstore.WithClock(clk), memstore.WithShards(1)}, opts...)...)
	c := durable.New(st)
	for i := range n {
		when := durable.After(time.Hour + time.Duration(i)*time.Millisecond)
		if due {
			when = durable.At(clk.Now().Add(-time.Hour + time.Duration(i)*time.Millisecond))
		}
		tasks.Must(c.Schedule(ctx, tasks.New(i), when))
	}
	return c, st
}

var clientOps = []cost.Op{
	{Name: "Client: Schedule, Reschedule and Cancel, beside n that wait", Growth: cost.Constant, Prepare: func(n int) func(int) {
		c, _ := queue(n, false)
		return func(i int) { tasks.Commands(c, i, durable.After(time.Hour)) }
	}},
	{Name: "Client: Schedule, Reschedule and Cancel, beside n that are due", Growth: cost.Logarithmic, Prepare: func(n int) func(int) {
		c, _ := queue(n, true)
		return func(i int) { tasks.Commands(c, i, tasks.Past) }
	}},
	{Name: "Client: Get, beside n", Growth: cost.Constant, Prepare: func(n int) func(int) {
		c, _ := queue(n, false)
		return func(i int) { tasks.Must(c.Get(ctx, tasks.New(i).Key)) }
	}},
	{Name: "Client: Repair", Growth: cost.LinearAtMost, Times: 1, Prepare: func(n int) func(int) {
		c, _ := queue(n, false)
		return func(int) { tasks.Must(c.Repair(ctx)) }
	}},
	{Name: "Client: Pause and Resume, beside n", Growth: cost.Constant, Prepare: func(n int) func(int) {
		c, _ := queue(n, false)
		return func(int) {
			check(c.Pause(ctx))
			check(c.Resume(ctx))
		}
	}},
	{Name: "Client: Pause and Resume, of n shards", Growth: cost.LinearAtMost, From: 4, To: 256, Prepare: func(n int) func(int) {
		c, _ := queue(0, false, memstore.WithShards(n))
		return func(int) {
			check(c.Pause(ctx))
			check(c.Resume(ctx))
		}
	}},
	{Name: "Client: Stats, beside n that wait", Growth: cost.Constant, Prepare: func(n int) func(int) {
		c, _ := queue(n, false)
		return func(int) { tasks.Must(c.Stats(ctx)) }
	}},
	{Name: "Client: Stats, of n shards", Growth: cost.LinearAtMost, From: 4, To: 256, Prepare: func(n int) func(int) {
		c, _ := queue(0, false, memstore.WithShards(n))
		return func(int) { tasks.Must(c.Stats(ctx)) }
	}},
	{Name: "Client: CommandStats, after n commands", Growth: cost.Constant, Prepare: func(n int) func(int) {
		c, _ := queue(n, false)
		return func(int) { c.CommandStats() }
	}},
	{Name: "Import", Growth: cost.Linear, Times: 1, To: 4096, From: 256, Prepare: func(n int) func(int) {
		_, from := queue(n, false)
		_, to := queue(0, false)
		var file bytes.Buffer
		tasks.Must(durable.Export(ctx, &file, from))
		check(durable.New(to).Pause(ctx))
		return func(int) { tasks.Must(durable.Import(ctx, to, &file)) }
	}},
	{Name: "Worker: HandlerStats, of n handlers", Growth: cost.Linearithmic, From: 4, To: 512, Prepare: func(n int) func(int) {
		c, _ := queue(0, false)
		w := durable.NewWorker(c)
		for i := range n {
			w.Handle(fmt.Sprint("h", i), func(context.Context, durable.Delivery) error { return nil })
		}
		return func(int) { w.HandlerStats() }
	}},
}

var storeOps = []cost.Op{
	{Name: "memstore: claim and report, beside n that are due", Growth: cost.Logarithmic, Prepare: func(n int) func(int) {
		_, st := queue(n, true)
		return func(i int) { tasks.Round(st, i) }
	}},
	{Name: "memstore: claim and report, beside n that wait", Growth: cost.Constant, Prepare: func(n int) func(int) {
		c, st := queue(n, false)
		for i := range 256 {
			tasks.Must(c.Schedule(ctx, tasks.New(10_000_000+i), tasks.Past))
		}
		return func(i int) { tasks.Round(st, i) }
	}},
	{Name: "memstore: List, a page", Growth: cost.Linearithmic, Times: 1, Prepare: func(n int) func(int) {
		_, st := queue(n, false)
		return func(int) { tasks.Must(st.List(ctx, 0, store.Filter{}, "", 100)) }
	}},
	{Name: "memstore: Stats, beside n that wait", Growth: cost.Constant, Prepare: func(n int) func(int) {
		_, st := queue(n, false)
		return func(int) { tasks.Must(st.Stats(ctx, 0)) }
	}},
	{Name: "memstore: Stats, beside n that are due", Growth: cost.Constant, Prepare: func(n int) func(int) {
		_, st := queue(n, true)
		return func(int) { tasks.Must(st.Stats(ctx, 0)) }
	}},
	{Name: "memstore: Forecast", Growth: cost.Linear, Times: 1, Prepare: func(n int) func(int) {
		_, st := queue(n, false)
		return func(int) { tasks.Must(st.Forecast(ctx, 0, []store.Time{1})) }
	}},
}
