// Package tasks is what the programs do whose costs are counted, on any store.
package tasks

import (
	"context"
	"fmt"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
)

// Must is for what cannot fail in these programs.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// New returns the i-th task, of up to ten million.
func New(i int) durable.Task { return durable.Task{Key: fmt.Sprintf("%08d", i), Handler: "h"} }

// Past is before the times of all other tasks.
var Past = durable.At(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))

// Commands schedules, moves and cancels a task that is none of New's.
func Commands(c *durable.Client, i int, when durable.When) {
	ctx, x := context.Background(), New(10_000_000+i)
	Must(c.Schedule(ctx, x, when))
	Must(c.Reschedule(ctx, x.Key, when))
	Must(c.Cancel(ctx, x.Key))
}

// Round claims a task from a store's one shard and, with the next command, reports that
// it is done. It is the i-th time.
func Round(st store.Store, i int) {
	do := func(r store.Round, number int) store.Answer {
		r.Lease, r.MaxCrashes = time.Minute, 3
		return Must(st.Do(context.Background(), 0, store.Stamp{Sender: "worker", Number: int64(number)}, r))
	}
	a := do(store.Round{Claim: store.Claim{Asked: true, Max: 1, Handlers: []string{"h"}}}, 2*i+1)
	x := a.Tasks[0]
	do(store.Round{Reports: []store.Report{{Hold: store.Hold{ID: x.ID, Token: x.Token}, Due: x.Due, End: store.Done}}}, 2*i+2)
}
