package redistimer

import (
	"context"
	"slices"
	"sync"
	"time"
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
	// busy is how many batches are under way, and queue what waits: tasks of so many
	// bytes, and others whose callers have given up.
	busy   int
	queue  []*lone
	bytes  int
	absent int
}

// lone is a task that is scheduled by itself.
type lone struct {
	shard             *shard
	key, when, record string
	mode              string
	until             time.Time // the deadline of its context; zero if it has none
	out               Outcome
	err               error
	done              chan struct{} // closed when out and err are set

	// Guarded by the combiner: it is sent, or will not be, since its caller has
	// given up.
	sent, gone bool
}

const (
	// maxBusy lets one batch be made while the server has another.
	maxBusy = 2
	// maxCombined is about the most that is sent at once.
	maxCombined = maxBatch
	// maxQueued and maxQueuedBytes are what may wait, beside what is sent.
	maxQueued      = 1 << 14
	maxQueuedBytes = 32 << 20
)

// schedule schedules a task, together with others.
func (b *combiner) schedule(ctx context.Context, x *lone) (Outcome, error) {
	x.done = make(chan struct{})
	x.until, _ = ctx.Deadline()
	b.mu.Lock()
	if len(b.queue)-b.absent >= maxQueued || b.bytes+len(x.record) > maxQueuedBytes {
		b.mu.Unlock()
		return Unknown, ErrBusy
	}
	b.queue = append(b.queue, x)
	b.bytes += len(x.record)
	lead := b.busy < maxBusy
	if lead {
		b.busy++
	}
	b.mu.Unlock()
	if lead {
		if ctx.Done() == nil {
			b.lead(ctx)
		} else {
			go b.lead(context.WithoutCancel(ctx))
		}
	}
	select {
	case <-x.done:
		return x.out, x.err
	case <-ctx.Done():
		return b.giveUp(ctx, x)
	}
}

// giveUp is for a caller whose context has ended.
func (b *combiner) giveUp(ctx context.Context, x *lone) (Outcome, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if x.sent {
		return Unknown, &UnknownError{Err: ctx.Err(), again: x.again}
	}
	x.gone = true
	b.bytes -= len(x.record)
	x.record = ""
	if b.absent++; b.absent > maxCombined && b.absent > len(b.queue)/2 {
		b.queue = slices.DeleteFunc(b.queue, func(x *lone) bool { return x.gone })
		b.absent = 0
	}
	return Unknown, b.c.explain(ctx.Err())
}

// again waits until there is an answer, or asks again if there is none.
func (x *lone) again(ctx context.Context) ([]Outcome, error) {
	select {
	case <-x.done:
	case <-ctx.Done():
		return nil, &UnknownError{Err: ctx.Err(), again: x.again}
	}
	if u, ok := x.err.(*UnknownError); ok {
		return u.again(ctx)
	}
	return []Outcome{x.out}, x.err
}

// lead sends what waits, and leaves what has come meanwhile to another goroutine.
func (b *combiner) lead(ctx context.Context) {
	b.mu.Lock()
	var some []*lone
	n := 0
	for ; n < len(b.queue) && len(some) < maxCombined; n++ {
		x := b.queue[n]
		if x.gone {
			b.absent--
			continue
		}
		x.sent = true
		b.bytes -= len(x.record)
		some = append(some, x)
	}
	b.queue = b.queue[n:]
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
	c := b.c
	shards := c.shards
	if len(some) == 1 {
		shards = []*shard{some[0].shard}
	}
	cmd := c.newCommand(scheduleScript, shards, len(some), some[0].mode)
	for i, x := range some {
		batch := &cmd.batches[0]
		if len(some) > 1 {
			batch = &cmd.batches[x.shard.index]
		}
		// What goes together is carried out before the first deadline or not at all.
		ch := batch.add(i, len(x.record), x.key, x.when, x.record)
		if !x.until.IsZero() && (ch.until.IsZero() || x.until.Before(ch.until)) {
			ch.until = x.until
		}
	}
	_ = cmd.run(ctx)
	var again, known []*lone
	for i, x := range some {
		var out []Outcome
		if out, x.err = cmd.resultOf(i); x.err == errLate && (x.until.IsZero() || time.Now().Before(x.until)) {
			again = append(again, x) // it was somebody else's deadline
			continue
		}
		x.out = out[0]
		known = append(known, x)
	}
	for _, x := range known {
		close(x.done)
	}
	if len(again) > 0 {
		b.mu.Lock()
		for _, x := range again {
			x.sent = false
			b.bytes += len(x.record)
		}
		b.queue = append(again, b.queue...)
		b.mu.Unlock()
	}
}
