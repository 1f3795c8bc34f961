package redistimer

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// A State is where a task is. It is in one place at any time.
type State uint8

const (
	// Pending: it waits for its time, or for its next attempt.
	Pending State = iota + 1
	// Running: a worker has a lease on it.
	Running
	// Dead: it is a dead letter.
	Dead
)

func (s State) String() string {
	switch s {
	case Pending:
		return "pending"
	case Running:
		return "running"
	case Dead:
		return "dead"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Info is what [Client.Get] knows of a task.
type Info struct {
	Task  Task
	State State
	// At is when it runs next if it is pending, when its lease ends if it is
	// running, and when it died if it is dead.
	At time.Time
	// Due is when the run was to begin: the same as At if it is pending and has
	// not been tried.
	Due time.Time
	// Attempts and Crashes count what has been tried of the present run.
	Attempts int
	Crashes  int
	// Stopping: it runs and was asked to stop. Following: it runs, and will again,
	// at Next, because it was scheduled again meanwhile; Task is still what runs.
	Stopping  bool
	Following bool
	Next      time.Time
	// Failures are the latest attempts that failed, the oldest first, 10 at most.
	Failures []Failure
}

// A Failure is how an attempt ended.
type Failure struct {
	Attempt int       // from 1; 0 if the run failed before its handler was called first
	Time    time.Time // by the clock of Redis
	Error   string    // its first 400 bytes
}

// Stats is what [Client.Stats] returns.
type Stats struct {
	Pending int64 // tasks that wait, those included that are overdue
	Overdue int64 // tasks that are due and not claimed
	Running int64
	Dead    int64
	// Late is how long the task has been due that waits longest; zero if there is
	// none.
	Late time.Duration
	// Paused is in how many shards the queue is paused: all or none, unless a
	// Pause or Resume has failed half way.
	Paused int

	// What has happened since the queue was made.

	Claimed   int64 // attempts begun
	Done      int64 // runs that ended well
	Retried   int64 // attempts that failed and were followed by another
	Died      int64 // runs that became dead letters
	Crashed   int64 // leases that ran out
	Released  int64 // attempts handed back
	Refused   int64 // reports of workers whose lease another had by then
	Cancelled int64 // tasks removed by Cancel, those included that were running
	// Unknown counts what workers have handed back, not having the handler or the
	// schedule that the task names. If it grows and Done does not, nobody has it.
	Unknown int64
}

// Get returns what is known of a task, or [ErrNotFound].
func (c *Client) Get(ctx context.Context, key string) (Info, error) {
	if err := checkKey(key); err != nil {
		return Info{}, err
	}
	v, err := c.one(ctx, getScript, c.shardOf(key), key)
	if err != nil {
		return Info{}, err
	}
	f, ok := words(v)
	if !ok || len(f) != 5 {
		return Info{}, ErrNotFound
	}
	place, _ := strconv.Atoi(f[0])
	r := parseRun(f[3])
	info := Info{
		State:    State(place),
		At:       parseTime(f[1]),
		Due:      r.due,
		Attempts: r.attempts,
		Crashes:  r.crashes,
		Stopping: r.stopping,
		Failures: parseFailures(f[4]),
	}
	if f[3] == "" {
		info.Due = info.At
	}
	if info.State == Running && !r.next.IsZero() {
		info.Following, info.Next = true, r.next
	}
	info.Task, _, err = decode(key, f[2])
	return info, err
}

// words takes an answer that consists of strings and numbers.
func words(v any) ([]string, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, len(list))
	for i, x := range list {
		switch x := x.(type) {
		case string:
			out[i] = x
		case int64:
			out[i] = strconv.FormatInt(x, 10)
		default:
			return nil, false
		}
	}
	return out, true
}

// everywhere runs a script in every shard, a few shards at a time.
func (c *Client) everywhere(ctx context.Context, s *script, args ...any) ([]any, error) {
	out := make([]any, 0, len(c.shards))
	for some := range slices.Chunk(c.shards, 64) {
		calls := make([]call, len(some))
		for i, sh := range some {
			calls[i] = call{script: s, shard: sh, args: args}
		}
		for _, cmd := range c.run(ctx, calls...) {
			v, err := cmd.Result()
			if err != nil {
				return nil, c.explain(err)
			}
			out = append(out, v)
		}
	}
	return out, nil
}

// Stats returns the queue's numbers, summed over its shards, which are read one
// after the other. O(shards).
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	answers, err := c.everywhere(ctx, statsScript)
	if err != nil {
		return Stats{}, err
	}
	var st Stats
	for _, v := range answers {
		n, err := ints(v, 15)
		if err != nil {
			return Stats{}, err
		}
		st.Late = max(st.Late, time.Duration(n[4])*time.Microsecond)
		st.Paused += int(n[5])
		for i, p := range []*int64{&st.Pending, &st.Overdue, &st.Running, &st.Dead} {
			*p += n[i]
		}
		for i, p := range []*int64{
			&st.Claimed, &st.Done, &st.Retried, &st.Died, &st.Crashed, &st.Released, &st.Refused, &st.Cancelled, &st.Unknown,
		} {
			*p += n[6+i]
		}
	}
	return st, nil
}

// Pause keeps workers from starting tasks, until Resume; what is running goes on,
// and scheduling too. O(shards).
func (c *Client) Pause(ctx context.Context) error { return c.pause(ctx, 1) }

// Resume ends a pause. What became due meanwhile runs at once. O(shards).
func (c *Client) Resume(ctx context.Context) error { return c.pause(ctx, 0) }

func (c *Client) pause(ctx context.Context, on int) error {
	x := c.newCommand(pauseScript, c.shards, len(c.shards))
	for i := range c.shards {
		x.batches[i].add(i, 0, on)
	}
	_, err := x.do(ctx)
	return err
}
