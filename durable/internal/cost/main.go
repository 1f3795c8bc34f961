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
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/internal/cost"
	"github.com/tickless/tickless/timertest"
)

func main() { cost.Main(ops) }

var ops = slices.Concat(clientOps, storeOps)

var ctx = context.Background()

// must is for what cannot fail here.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func check(err error) { must(0, err) }

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
		must(c.Schedule(ctx, task(i), when))
	}
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

var clientOps = []cost.Op{
	{Name: "Client: Schedule, Reschedule and Cancel, beside n that wait", Growth: cost.Constant, Prepare: func(n int) func(int) {
		c, _ := queue(n, false)
		return func(i int) { commands(c, i, durable.After(time.Hour)) }
	}},
	{Name: "Client: Schedule, Reschedule and Cancel, beside n that are due", Growth: cost.Logarithmic, Prepare: func(n int) func(int) {
		c, _ := queue(n, true)
		return func(i int) { commands(c, i, past) }
	}},
	{Name: "Client: Get, beside n", Growth: cost.Constant, Prepare: func(n int) func(int) {
		c, _ := queue(n, false)
		return func(i int) { must(c.Get(ctx, task(i).Key)) }
	}},
	{Name: "Client: Repair", Growth: cost.LinearAtMost, Times: 1, Prepare: func(n int) func(int) {
		c, _ := queue(n, false)
		return func(int) { must(c.Repair(ctx)) }
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
		return func(int) { must(c.Stats(ctx)) }
	}},
	{Name: "Client: Stats, of n shards", Growth: cost.LinearAtMost, From: 4, To: 256, Prepare: func(n int) func(int) {
		c, _ := queue(0, false, memstore.WithShards(n))
		return func(int) { must(c.Stats(ctx)) }
	}},
	{Name: "Client: CommandStats, after n commands", Growth: cost.Constant, Prepare: func(n int) func(int) {
		c, _ := queue(n, false)
		return func(int) { c.CommandStats() }
	}},
	{Name: "Import", Growth: cost.Linear, Times: 1, To: 4096, From: 256, Prepare: func(n int) func(int) {
		_, from := queue(n, false)
		_, to := queue(0, false)
		var file bytes.Buffer
		must(durable.Export(ctx, &file, from))
		check(durable.New(to).Pause(ctx))
		return func(int) { must(durable.Import(ctx, to, &file)) }
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

// round claims a task and, with the next command, reports that it is done.
func round(st *memstore.Store, i int) {
	do := func(r store.Round, number int64) store.Answer {
		r.Lease, r.MaxCrashes = time.Minute, 3
		return must(st.Do(ctx, 0, store.Stamp{Sender: "worker", Number: number}, r))
	}
	a := do(store.Round{Claim: store.Claim{Asked: true, Max: 1, Handlers: []string{"h"}}}, int64(2*i+1))
	x := a.Tasks[0]
	do(store.Round{Reports: []store.Report{{Hold: store.Hold{ID: x.ID, Token: x.Token}, Due: x.Due, End: store.Done}}}, int64(2*i+2))
}

var storeOps = []cost.Op{
	{Name: "memstore: claim and report, beside n that are due", Growth: cost.Logarithmic, Prepare: func(n int) func(int) {
		_, st := queue(n, true)
		return func(i int) { round(st, i) }
	}},
	{Name: "memstore: claim and report, beside n that wait", Growth: cost.Constant, Prepare: func(n int) func(int) {
		c, st := queue(n, false)
		for i := range 256 {
			must(c.Schedule(ctx, task(10_000_000+i), past))
		}
		return func(i int) { round(st, i) }
	}},
	{Name: "memstore: List, a page", Growth: cost.Linearithmic, Times: 1, Prepare: func(n int) func(int) {
		_, st := queue(n, false)
		return func(int) { must(st.List(ctx, 0, store.Filter{}, "", 100)) }
	}},
	{Name: "memstore: Stats, beside n that wait", Growth: cost.Constant, Prepare: func(n int) func(int) {
		_, st := queue(n, false)
		return func(int) { must(st.Stats(ctx, 0)) }
	}},
	{Name: "memstore: Stats, beside n that are due", Growth: cost.Constant, Prepare: func(n int) func(int) {
		_, st := queue(n, true)
		return func(int) { must(st.Stats(ctx, 0)) }
	}},
	{Name: "memstore: Forecast", Growth: cost.Linear, Times: 1, Prepare: func(n int) func(int) {
		_, st := queue(n, false)
		return func(int) { must(st.Forecast(ctx, 0, []store.Time{1})) }
	}},
}
