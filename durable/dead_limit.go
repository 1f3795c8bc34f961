package durable

import (
	"context"
	"fmt"
	"time"

	"github.com/tickless/tickless/durable/internal/worker"
)

// A deadLimit has the arguments of WithDeadLimit.
type deadLimit struct {
	maxAge   time.Duration // 0: no limit
	maxCount int           // 0: no limit
}

// WithDeadLimit makes the Worker purge dead letters once a minute: those older than
// age, and the oldest if there are more than count. Zero, the default, means no limit.
// One Worker with this option is enough for a store. WithDeadLimit panics if age or
// count is negative.
func WithDeadLimit(age time.Duration, count int) WorkerOption {
	if age < 0 || count < 0 {
		panic(fmt.Sprintf("durable: WithDeadLimit: must not be negative, got %v and %d", age, count))
	}
	return workerOption(func(c *workerConfig) { c.deadLimit = deadLimit{age, count} })
}

// purgeDeadLetters purges dead letters that exceed the limit, until the context ends.
func (w *Worker) purgeDeadLetters(ctx context.Context) {
	const batchSize = 200
	for {
		n, err := w.purgeOldestDead(ctx, batchSize)
		w.counters.purged.Add(int64(n))
		pause := time.Minute
		switch {
		case err != nil && ctx.Err() == nil:
			w.logError(err)
		case n == batchSize:
			pause = 10 * time.Millisecond // others use the store too
		}
		if worker.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// purgeOldestDead purges the oldest dead letters that exceed the limit, at most
// batchSize. It returns how many it purged.
func (w *Worker) purgeOldestDead(ctx context.Context, batchSize int) (n int, err error) {
	limit := w.config.deadLimit
	var excess int64
	if limit.maxCount > 0 {
		st, err := w.client.Stats(ctx)
		if err != nil {
			return 0, err
		}
		excess = st.Dead - int64(limit.maxCount)
	}
	now, err := w.client.latestNow(ctx)
	if err != nil {
		return 0, err
	}
	var ids []string
	for info, err := range w.client.List(ctx, Filter{State: Dead}) {
		if info.ID == "" {
			return 0, err
		}
		isTooOld := limit.maxAge > 0 && now.Sub(info.At) > limit.maxAge
		if !isTooOld && int64(len(ids)) >= excess || len(ids) == batchSize {
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
