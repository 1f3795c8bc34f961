package callbacks

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/redistimer"
	"github.com/tickless/tickless/redistimer/callback"
)

// schedule schedules the tasks in batches, a few at a time.
func (r *run) schedule(ctx context.Context, url string, base time.Time, res *result) error {
	const size = 1000
	var scheduled atomic.Int64
	var next atomic.Int64
	failed := make(chan error, 4)
	var all sync.WaitGroup
	for range cap(failed) {
		all.Go(func() {
			for {
				from := int(next.Add(size)) - size
				if from >= r.config.Tasks || ctx.Err() != nil {
					return
				}
				var items []redistimer.Item
				for i := from; i < min(from+size, r.config.Tasks); i++ {
					t, err := callback.Request{URL: url, Body: []byte(strconv.Itoa(i))}.Task(strconv.Itoa(i))
					if err != nil {
						failed <- err
						return
					}
					due := base.Add(rand.N(r.config.Duration) + r.offset)
					items = append(items, redistimer.Item{Task: t, When: redistimer.At(due)})
				}
				out, err := r.queue.ScheduleBatch(ctx, items)
				for _, o := range out {
					if o == redistimer.Created {
						scheduled.Inc()
					}
				}
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	res.Scheduled = scheduled.Load()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
