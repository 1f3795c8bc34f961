package durable

import (
	"context"
	"time"
)

// listen has the loops claim when the store wakes them.
func (w *Worker) listen(ctx context.Context) {
	shards := make([]int, len(w.loops))
	for i := range shards {
		shards[i] = i
	}
	places := w.places.Load()
	wake := func(shard int) {
		w.n.wakeups.Add(1)
		places.await(w.loops[shard]) // a worker that has no room leaves wake-ups to others
		w.loops[shard].claimSoon()
	}
	for pause := firstBackoff; ; pause = min(2*pause, lastBackoff) {
		begin := time.Now()
		err := w.client.store.Wait(ctx, shards, wake)
		if ctx.Err() != nil {
			return
		}
		if hopeless(err) {
			w.fail(err)
			return
		}
		if time.Since(begin) > lastBackoff {
			pause = firstBackoff
		}
		w.complain(err)
		if sleep(ctx, pause) != nil {
			return
		}
	}
}
