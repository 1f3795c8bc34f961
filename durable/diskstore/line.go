package diskstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tickless/tickless/durable/store"
)

// A call is what a shard's goroutine is asked for: one of command, round and look.
type call struct {
	stamp   store.Stamp
	command *store.Command
	round   *store.Round
	look    func() // of a call that changes nothing
	bytes   int

	// own is a copy of a command, which is in items and records.
	own     store.Command
	items   []store.Item
	records []byte

	// taken is set by the goroutine that carries it out, or by the caller, who has
	// given up: whoever is first.
	taken atomic.Bool
	done  chan struct{} // gets an element when it was carried out
	// answered is set by the caller when it has got that: then nobody else has the call.
	answered bool
	// These are set before.
	outcomes []store.Outcome
	answer   store.Answer
	err      error
}

// maxCalls is how many calls wait in a shard, beyond which they are refused.
const maxCalls = 8192

// A line has the calls that wait for a shard's goroutine.
type line struct {
	signal chan struct{} // has an element if there may be calls
	mu     sync.Mutex
	calls  []*call
}

func (l *line) add(c *call) error {
	l.mu.Lock()
	if len(l.calls) == maxCalls {
		l.mu.Unlock()
		return store.ErrBusy
	}
	l.calls = append(l.calls, c)
	l.mu.Unlock()
	select {
	case l.signal <- struct{}{}:
	default:
	}
	return nil
}

// take appends the calls that go into a batch together, and reports whether there are
// more.
func (l *line) take(out []*call) (_ []*call, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, bytes := 0, 0
	for n < len(l.calls) && bytes < maxBatch {
		bytes += l.calls[n].bytes
		n++
	}
	for _, c := range l.calls[:n] {
		if c.taken.CompareAndSwap(false, true) {
			out = append(out, c)
		}
	}
	rest := copy(l.calls, l.calls[n:])
	clear(l.calls[rest:])
	l.calls = l.calls[:rest]
	return out, rest > 0
}

// call has the shard carry out a call, and returns when what it has done, and all that
// was done before it, is on the disk.
func (sh *shard) call(ctx context.Context, c *call) error {
	if err := sh.s.begin(ctx); err != nil {
		return err
	}
	if c.done == nil {
		c.done = make(chan struct{}, 1)
	}
	if err := sh.line.add(c); err != nil {
		return err
	}
	over, failed := sh.s.over, (chan struct{})(nil) // over comes with failed
	for {
		select {
		case <-c.done:
			c.answered = true
			return c.err
		case <-ctx.Done():
			if c.taken.CompareAndSwap(false, true) {
				return store.Ended(ctx)
			}
			return fmt.Errorf("diskstore: %w", ctx.Err())
		case <-over:
			if c.taken.CompareAndSwap(false, true) {
				return notDone(sh.s.why())
			}
			over, failed = nil, sh.s.failed // what was begun is finished
		case <-failed:
			select {
			case <-c.done:
				c.answered = true
				return c.err
			default:
				return sh.s.why()
			}
		}
	}
}

// The goroutine may still look at what it was asked when the caller has given up, and
// goes on with what is the caller's. So it gets a copy. A caller that has not given up
// uses the memory of its call again.

var commandCalls = sync.Pool{New: func() any { return new(call) }}

// maxKept is the largest copy whose memory is used again.
const maxKept = maxBatch

// free gives back a call of a command. Nothing that the shard keeps, or has answered to
// another call, is in it: see claimed.
func (x *call) free() {
	if !x.answered || cap(x.records) > maxKept {
		return
	}
	clear(x.items)
	*x = call{items: x.items[:0], records: x.records[:0], done: x.done}
	commandCalls.Put(x)
}

// copyCommand makes the call one of a command.
func (x *call) copyCommand(c *store.Command) {
	size := 0
	for i := range c.Items {
		size += len(c.Items[i].Task.Record)
		if e := c.Items[i].Entry; e != nil {
			size += len(e.Record)
			if e.NextTask != nil {
				size += len(e.NextTask.Record)
			}
		}
	}
	x.records = slices.Grow(x.records, size)
	copied := func(b []byte) []byte {
		if len(b) == 0 {
			return nil
		}
		n := len(x.records)
		x.records = append(x.records, b...)
		return x.records[n:len(x.records):len(x.records)]
	}
	x.items = append(x.items, c.Items...)
	for i := range x.items {
		item := &x.items[i]
		item.Task.Record = copied(item.Task.Record)
		if item.Entry != nil {
			e := *item.Entry
			e.Record, e.Failures = copied(e.Record), slices.Clone(e.Failures)
			if e.NextTask != nil {
				next := *e.NextTask
				next.Record = copied(next.Record)
				e.NextTask = &next
			}
			item.Entry = &e
		}
	}
	x.own = store.Command{Op: c.Op, Keep: c.Keep, Items: x.items}
	x.command, x.bytes = &x.own, size+100*len(x.items)
}

func ownRound(r *store.Round) *store.Round {
	own := *r
	own.Reports, own.Extend = slices.Clone(r.Reports), slices.Clone(r.Extend)
	own.Claim.Handlers, own.Claim.Schedules = slices.Clone(r.Claim.Handlers), slices.Clone(r.Claim.Schedules)
	return &own
}
