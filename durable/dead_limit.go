package durable

import (
	"context"
	"fmt"
	"time"
)

// A deadLimit has the arguments of WithDeadLimit.
type deadLimit struct {
	age  time.Duration
	most int
}

// WithDeadLimit makes the Worker purge dead letters that are older than age. If there
// are more than count, it also purges the oldest ones. Zero means no limit, and is the
// default for both. The Worker checks once a minute and purges in batches of 200;
// [WorkerStats.Purged] counts them. One such Worker for each store is enough.
// WithDeadLimit panics if age or count is negative.
func WithDeadLimit(age time.Duration, most int) WorkerOption {
	if age < 0 || most < 0 {
		panic(fmt.Sprintf("durable: WithDeadLimit: must not be negative, got %v and %d", age, most))
	}
	return workerOption(func(c *workerConfig) { c.dead = deadLimit{age, most} })
}

// limitDead purges dead letters that exceed the limit, until the context ends.
func (w *Worker) limitDead(ctx context.Context) {
	const batch = 200
	for {
		n, err := w.purgeOldest(ctx, batch)
		w.n.purged.Add(int64(n))
		pause := time.Minute
		switch {
		case err != nil && ctx.Err() == nil:
			w.complain(err)
		case n == batch:
			pause = 10 * time.Millisecond // others use the store too
		}
		if sleep(ctx, pause) != nil {
			return
		}
	}
}

// purgeOldest purges the oldest dead letters that exceed the limit, at most batch of
// them. It returns how many.
func (w *Worker) purgeOldest(ctx context.Context, most int) (n int, err error) {
	limit := w.config.dead
	var excess int64
	if limit.most > 0 {
		st, err := w.client.Stats(ctx)
		if err != nil {
			return 0, err
		}
		excess = st.Dead - int64(limit.most)
	}
	now, err := w.client.latest(ctx)
	if err != nil {
		return 0, err
	}
	var ids []string
	for info, err := range w.client.List(ctx, Filter{State: Dead}) {
		if info.ID == "" {
			return 0, err
		}
		old := limit.age > 0 && now.Sub(info.At) > limit.age
		if !old && int64(len(ids)) >= excess || len(ids) == most {
			break
		}
		ids = append(ids, info.ID)
	}
	if len(ids) == 0 {
		return 0, nil
	}
	outcomes, err := w.client.PurgeBatch(ctx, ids)
	for _, o := range outcomes {
		if o == Removed {
			n++
		}
	}
	return n, err
}
