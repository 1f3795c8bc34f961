package redistimer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// # Once, however often it is sent
//
// An answer can be lost at any moment, and go-redis sends again what it has no
// answer to; a copy may even come when its sender has long gone on. So every
// command that changes something says who sends it and which of the sender's
// commands it is, and each shard keeps the number and the answer of each sender's
// last. The same number again gets the same answer, and a lower one is refused. A
// sender has one command at a time under way, and is forgotten a day after its
// last one: numbers begin with the time.
//
// A Client is many senders, its lanes: each goroutine's command takes one that is
// free. The lane of a command without an answer is not used again: the command
// can be asked for until it is forgotten.

// A lane is a sender. Whoever has taken it has it alone.
type lane struct {
	sender string
	last   int64
}

// lanes are the lanes of a Client that are free.
type lanes struct {
	client string // the client's name in Redis
	mu     sync.Mutex
	free   []*lane
	made   int64
}

func (s *lanes) take() *lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		l := s.free[n-1]
		s.free = s.free[:n-1]
		return l
	}
	s.made++
	return &lane{sender: "s:" + s.client + "." + strconv.FormatInt(s.made, 36)}
}

func (s *lanes) put(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, l)
}

// next returns the next number after last. It needs a client that knows the queue.
func (c *Client) next(last int64) int64 {
	return max(last+1, c.begun.Load().at(time.Now()))
}

// A command is one call of a method that changes something: a script, for items
// in any shards.
type command struct {
	c       *Client
	script  *script
	head    []any // what the script is told before the items
	config  scheduleConfig
	shards  []*shard
	running chan struct{} // has an element while it is asked for again

	// These are the method's, and then of whoever asks again.

	lane    *lane
	batches []batch // one for each of shards
	out     []Outcome
	errs    []error // an *unansweredError for what is not known
}

// newCommand returns a command for n items, which the caller adds to its batches.
func (c *Client) newCommand(s *script, shards []*shard, n int, head ...any) *command {
	return &command{
		c:       c,
		script:  s,
		head:    head,
		shards:  shards,
		running: make(chan struct{}, 1),
		batches: newBatches(len(shards), n),
		out:     make([]Outcome, n),
		errs:    make([]error, n),
	}
}

// single runs a command for one task.
func (c *Client) single(ctx context.Context, s *script, id string, args ...any) (Outcome, error) {
	x := c.newCommand(s, []*shard{c.shardOf(id)}, 1)
	x.batches[0].add(0, 0, args...)
	out, err := x.do(ctx)
	return out[0], err
}

// do runs the command, and returns the outcomes and the first error, which is an
// UnknownError if it is not known of some items what became of them.
func (x *command) do(ctx context.Context) ([]Outcome, error) {
	deadline, _ := ctx.Deadline()
	for i := range x.batches {
		for j := range x.batches[i].chunks {
			x.batches[i].chunks[j].until = deadline
		}
	}
	return x.result(x.run(ctx))
}

func (x *command) result(unknown error) ([]Outcome, error) {
	if unknown == nil {
		return x.out, firstOf(x.errs)
	}
	return slices.Clone(x.out), x.unknown(unknown, x.result)
}

// resultOf is the result of one of the items.
func (x *command) resultOf(item int) ([]Outcome, error) {
	out := []Outcome{x.out[item]}
	if err, ok := x.errs[item].(*unansweredError); ok {
		return out, x.unknown(err.error, func(error) ([]Outcome, error) { return x.resultOf(item) })
	}
	return out, x.errs[item]
}

// unknown returns an error for a command that was not answered. Result returns what
// is known after it was asked for again.
func (x *command) unknown(err error, result func(unknown error) ([]Outcome, error)) error {
	var again func(ctx context.Context) ([]Outcome, error)
	again = func(ctx context.Context) ([]Outcome, error) {
		select {
		case x.running <- struct{}{}:
			defer func() { <-x.running }()
		case <-ctx.Done():
			return nil, &UnknownError{Err: ctx.Err(), again: again}
		}
		return result(x.run(ctx))
	}
	return &UnknownError{Err: err, again: again}
}

// run sends what has not been answered, and returns an error if there is still
// something of which it is not known whether it was carried out.
//
// The first chunks of all shards make one pipeline, then the second ones, so that
// a shard's items keep their order. A shard that does not answer gets no more.
func (x *command) run(ctx context.Context) (unknown error) {
	c := x.c
	defer func() {
		if unknown == nil && x.lane != nil {
			c.lanes.put(x.lane)
			x.lane = nil
		}
	}()
	if err := c.know(ctx); err != nil {
		return x.unsent(err)
	}
	if x.lane == nil {
		x.lane = c.lanes.take()
	}
	for i := range x.batches {
		x.batches[i].stuck = false
	}
	for {
		var calls []call
		var batches []*batch
		for i := range x.batches {
			if b := &x.batches[i]; b.next < len(b.chunks) && !b.stuck {
				calls = append(calls, call{script: x.script, shard: x.shards[i]})
				batches = append(batches, b)
			}
		}
		if len(calls) == 0 {
			return unknown
		}
		if err := x.prepare(ctx, calls, batches); err != nil {
			return cmp.Or(unknown, x.unsent(err))
		}
		cmds, short := x.send(ctx, calls)
		for j, b := range batches {
			if err := x.answered(b, cmds[j]); err != nil {
				unknown = cmp.Or(unknown, err)
			} else if short != nil && short[j] != nil {
				setAll(x.errs, b.chunks[b.next-1].items, short[j])
			}
		}
	}
}

// answered takes the answer to the next chunk of a batch, and returns an error if
// it is not known whether it was carried out.
func (x *command) answered(b *batch, cmd *redis.Cmd) error {
	ch := &b.chunks[b.next]
	list, err := digits(cmd, len(ch.items))
	switch {
	case err == nil:
		for k, item := range ch.items {
			x.out[item] = Outcome(list[k] - '0')
		}
		setAll(x.errs, ch.items, nil)
		b.next++
	case notDone(err, ch.sent):
		setAll(x.errs, ch.items, x.c.explain(err))
		b.next++
	default:
		b.stuck, ch.sent = true, true
		return x.unanswered(b, err)
	}
	return nil
}

// unanswered sets the error of what is left of a batch, and returns it.
func (x *command) unanswered(b *batch, err error) error {
	var unsent *unsentError
	if errors.As(err, &unsent) {
		err = unsent.err
	}
	for _, ch := range b.chunks[b.next:] {
		setAll(x.errs, ch.items, &unansweredError{err})
	}
	return err
}

// prepare gives the next chunks their numbers, and the calls their headers.
func (x *command) prepare(ctx context.Context, calls []call, batches []*batch) error {
	for j, b := range batches {
		if !b.chunks[b.next].until.IsZero() {
			if err := x.c.readClock(ctx, calls[j].shard); err != nil {
				return err
			}
		}
	}
	number := x.c.next(x.lane.last)
	x.lane.last = number
	for j, b := range batches {
		ch := &b.chunks[b.next]
		if ch.header.sender == "" {
			ch.header = header{sender: x.lane.sender, number: number}
		}
		if r := calls[j].shard.clock.Load(); r != nil && !ch.until.IsZero() {
			ch.header.until = max(1, r.at(ch.until))
		}
		calls[j].header = ch.header
		calls[j].args = ch.args
		if len(x.head) > 0 {
			calls[j].args = append(append(make([]any, 0, len(x.head)+len(ch.args)), x.head...), ch.args...)
		}
	}
	return nil
}

func (x *command) send(ctx context.Context, calls []call) (cmds []*redis.Cmd, short []error) {
	if x.config.replicas > 0 {
		return x.c.replicated(ctx, calls, x.config.replicas, x.config.wait)
	}
	return x.c.send(ctx, x.c.pipeline, calls), nil
}

// unsent sets the error of all that has never been sent. It returns the error if
// there is something else that is not known.
func (x *command) unsent(err error) (unknown error) {
	for i := range x.batches {
		b := &x.batches[i]
		for ; b.next < len(b.chunks) && !b.chunks[b.next].sent; b.next++ {
			setAll(x.errs, b.chunks[b.next].items, x.c.explain(err))
		}
		if b.next < len(b.chunks) {
			unknown = x.unanswered(b, err)
		}
	}
	return unknown
}

// notDone reports whether a command with this error was certainly not carried
// out, and will not be. What a script itself answers is certain: it looks first
// whether the command was carried out before, and that it came too late stays true.
// What else a server replies, or that nothing was sent, is about this copy: if one
// was sent before, it may have been carried out, or may still be.
func notDone(err error, sent bool) bool {
	for _, prefix := range []string{"TICKLESS late", "TICKLESS schema "} {
		if strings.HasPrefix(err.Error(), prefix) {
			return true
		}
	}
	if sent {
		return false
	}
	for _, prefix := range []string{"OOM ", "NOPERM ", "NOAUTH ", "WRONGPASS "} {
		if strings.HasPrefix(err.Error(), prefix) {
			return true
		}
	}
	return isUnsent(err)
}

// readClock reads the clock of a shard's server, if it was not read for a while.
func (c *Client) readClock(ctx context.Context, sh *shard) error {
	if r := sh.clock.Load(); r != nil && time.Since(r.after) < fresh {
		return nil
	}
	return c.check(ctx, sh)
}

// check asks a shard for its clock, and so for its schema.
func (c *Client) check(ctx context.Context, sh *shard) error {
	s, err := c.send(ctx, c.pipeline, []call{{script: checkScript, shard: sh}})[0].Text()
	if err != nil {
		return err
	}
	micros, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return err
	}
	sh.clock.Store(&reading{micros, time.Now()})
	return nil
}
