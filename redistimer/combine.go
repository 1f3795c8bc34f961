package redistimer

import (
	"context"
	"sync"
)

// A combiner makes batches of the tasks that goroutines schedule one by one at
// the same time: what comes while commands are under way goes out together with
// the next ones. A goroutine alone does not wait for anybody. (32 goroutines
// schedule about twice as fast for it: BenchmarkSchedule/by=one.)
//
// There is one for all shards of one server, but one for each shard of a cluster:
// a shard whose server is gone must not hold up others.
type combiner struct {
	c  *Client
	mu sync.Mutex
	// busy is how many batches are under way, and queue what waits.
	busy  int
	queue []*lone
}

// lone is a task that is scheduled by itself.
type lone struct {
	shard             int
	key, when, record string
	mode              string
	out               Outcome
	err               error
	done              chan struct{} // closed when out and err are set
}

const (
	// maxBusy lets one batch be made while the server has another.
	maxBusy = 2
	// maxCombined is about the most that is sent at once.
	maxCombined = maxBatch
)

// schedule schedules a task, together with others. If ctx ends before, the task
// may be scheduled all the same.
func (b *combiner) schedule(ctx context.Context, x *lone) (Outcome, error) {
	x.done = make(chan struct{})
	b.mu.Lock()
	b.queue = append(b.queue, x)
	lead := b.busy < maxBusy
	if lead {
		b.busy++
	}
	b.mu.Unlock()
	if lead {
		b.lead(context.WithoutCancel(ctx))
	}
	select {
	case <-x.done:
		return x.out, x.err
	case <-ctx.Done():
		return Unknown, ctx.Err()
	}
}

// lead sends what waits, and leaves what has come meanwhile to another goroutine.
func (b *combiner) lead(ctx context.Context) {
	b.mu.Lock()
	some := b.queue
	if len(some) > maxCombined {
		some = some[:maxCombined:maxCombined]
	}
	b.queue = b.queue[len(some):]
	b.mu.Unlock()

	for len(some) > 0 {
		// All with one mode, and the order kept.
		n := 1
		for n < len(some) && some[n].mode == some[0].mode {
			n++
		}
		b.send(ctx, some[:n])
		some = some[n:]
	}

	b.mu.Lock()
	if len(b.queue) == 0 {
		b.queue = nil
		b.busy--
		b.mu.Unlock()
		return
	}
	b.mu.Unlock()
	go b.lead(ctx)
}

func (b *combiner) send(ctx context.Context, some []*lone) {
	batches := newBatches(len(b.c.shards), len(some))
	for i, x := range some {
		batches[x.shard].add(i, len(x.record), x.key, x.when, x.record)
	}
	errs := make([]error, len(some))
	out := b.c.batched(ctx, errs, batches, scheduleScript, scheduleConfig{}, some[0].mode)
	for i, x := range some {
		x.out, x.err = out[i], errs[i]
		close(x.done)
	}
}
