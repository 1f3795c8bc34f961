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
}

type chunk struct {
	args  []any
	items []int // whose outcomes they are
	bytes int
}

// add adds what a script is to be told about an item.
func (b *batch) add(item, bytes int, args ...any) {
	if n := len(b.chunks); n == 0 || len(b.chunks[n-1].items) == maxBatch || b.chunks[n-1].bytes+bytes > maxBytes {
		b.chunks = append(b.chunks, chunk{})
	}
	last := &b.chunks[len(b.chunks)-1]
	last.args = append(last.args, args...)
	last.items = append(last.items, item)
	last.bytes += bytes
}

// batched runs the script on all batches, one per shard, and returns what it
// answers for each of the n items. The first chunks of all shards make one
// pipeline, then the second ones, so that a shard's items keep their order.
func (c *Client) batched(ctx context.Context, n int, batches []batch, s *script, config scheduleConfig, head ...any) ([]Outcome, error) {
	out := make([]Outcome, n)
	var first error
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
			return out, first
		}
		var cmds []*redis.Cmd
		if config.replicas > 0 {
			var err error
			if cmds, err = c.replicated(ctx, calls, config.replicas, config.wait); err != nil && first == nil {
				first = err
			}
		} else {
			cmds = c.run(ctx, calls...)
		}
		for i, cmd := range cmds {
			answers, err := cmd.Slice()
			if err != nil {
				if first == nil {
					first = c.explain(err)
				}
				continue
			}
			list, err := ints(answers, len(chunks[i].items))
			if err != nil && first == nil {
				first = err
			}
			for j, o := range list {
				out[chunks[i].items[j]] = Outcome(o)
			}
		}
		if ctx.Err() != nil && first == nil {
			first = ctx.Err()
		}
		if ctx.Err() != nil {
			return out, first
		}
	}
}
