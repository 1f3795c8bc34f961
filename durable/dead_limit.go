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
	for {
		if err := w.purgeExcess(ctx); err != nil && ctx.Err() == nil {
			w.logError(err)
		}
		if worker.Sleep(ctx, time.Minute) != nil {
			return
		}
	}
}

// purgeExcess purges dead letters that are too old, and then the oldest of those that are too
// many.
func (w *Worker) purgeExcess(ctx context.Context) error {
	limit := w.config.deadLimit
	purge := func(f Filter, opts ...BulkOption) error {
		n, err := w.client.PurgeAll(ctx, f, opts...)
		w.counters.purged.Add(int64(n))
		return err
	}
	if limit.maxAge > 0 {
		now, err := w.client.latestNow(ctx)
		if err == nil {
			err = purge(Filter{State: Dead, To: now.Add(-limit.maxAge)})
		}
		if err != nil {
			return err
		}
	}
	if limit.maxCount == 0 {
		return nil
	}
	st, err := w.client.Stats(ctx)
	if excess := int(st.Dead) - limit.maxCount; err == nil && excess > 0 {
		err = purge(Filter{State: Dead}, AtMost(excess))
	}
	return err
}
