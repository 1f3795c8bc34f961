package redistimer

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// maxBytes is the size of the records from which on a script gets no more of
// them: what a server takes up in a millisecond or so.
const maxBytes = 512 << 10

// A batch is what goes to one shard, cut into scripts' arguments.
type batch struct {
	chunks []chunk
	expect int // about how many items will come
}

type chunk struct {
	args  []any
	items []int // whose outcomes they are
	bytes int
}

// newBatches makes one for each shard, for n items in all.
func newBatches(shards, n int) []batch {
	batches := make([]batch, shards)
	for i := range batches {
		batches[i].expect = n/shards + n/shards/8
	}
	return batches
}

// add adds what a script is to be told about an item.
func (b *batch) add(item, bytes int, args ...any) {
	if n := len(b.chunks); n == 0 || len(b.chunks[n-1].items) == maxBatch || b.chunks[n-1].bytes+bytes > maxBytes {
		b.chunks = append(b.chunks, chunk{args: make([]any, 0, len(args)*min(b.expect+1, maxBatch))})
	}
	last := &b.chunks[len(b.chunks)-1]
	last.args = append(last.args, args...)
	last.items = append(last.items, item)
	last.bytes += bytes
}

// batched runs the script on all batches, one per shard, returns what it answers
// for each item, and sets their errors. The first chunks of all shards make one
// pipeline, then the second ones, so that a shard's items keep their order.
func (c *Client) batched(ctx context.Context, errs []error, batches []batch, s *script, config scheduleConfig, head ...any) []Outcome {
	out := make([]Outcome, len(errs))
	for round := 0; ; round++ {
		var calls []call
		var chunks []chunk
		for i := range batches {
			if round < len(batches[i].chunks) {
				ch := batches[i].chunks[round]
				args := ch.args
				if len(head) > 0 {
					args = append(append(make([]any, 0, len(head)+len(ch.args)), head...), ch.args...)
				}
				calls = append(calls, call{s, c.shards[i], args})
				chunks = append(chunks, ch)
			}
		}
		if len(calls) == 0 {
			return out
		}
		if err := ctx.Err(); err != nil {
			for i := range batches {
				for r := round; r < len(batches[i].chunks); r++ {
					setAll(errs, batches[i].chunks[r].items, err)
				}
			}
			return out
		}
		var cmds []*redis.Cmd
		if config.replicas > 0 {
			var short []error
			cmds, short = c.replicated(ctx, calls, config.replicas, config.wait)
			for i, err := range short {
				setAll(errs, chunks[i].items, err)
			}
		} else {
			cmds = c.run(ctx, calls...)
		}
		for i, cmd := range cmds {
			list, err := digits(cmd, len(chunks[i].items))
			if err != nil {
				setAll(errs, chunks[i].items, c.explain(err))
				continue
			}
			for j, item := range chunks[i].items {
				out[item] = Outcome(list[j] - '0')
			}
		}
	}
}

func setAll(errs []error, items []int, err error) {
	for _, i := range items {
		errs[i] = err
	}
}

// firstOf returns the first error that there is.
func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
