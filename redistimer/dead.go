package redistimer

import (
	"context"
	"iter"
	"time"
)

// A DeadLetter is a run that failed for good: its attempts were used up, its
// handler said [NoRetry], it crashed its workers too often, or it was missed. It
// stays until it is requeued, purged or scheduled anew. A task that repeats has one
// for all its runs, however many fail.
type DeadLetter struct {
	// ID names the dead letter in [Client.Requeue] and [Client.Purge]. It is the
	// key, but for the runs of a repeating task, which goes on without them.
	ID   string
	Task Task
	Died time.Time
	Due  time.Time
	// Runs is how many runs have died: more than 1 for a repeating task alone, all
	// of whose runs that died share one dead letter, which tells of the latest.
	Runs     int
	Attempts int // those in which the handler was called, or the worker crashed
	Crashes  int
	Failures []Failure // the latest attempts, the oldest first
}

// DeadLetters goes over all dead letters, shard by shard and within a shard by
// the time of their death. It reads them in pages of 100; those that come or go
// meanwhile may be missed, or seen twice. An error ends it.
func (c *Client) DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error] {
	const page = 100
	return func(yield func(DeadLetter, error) bool) {
		for _, sh := range c.shards {
			for after, last := "-inf", ""; ; {
				v, err := c.one(ctx, deadScript, sh, page, after, last)
				if err != nil {
					yield(DeadLetter{}, err)
					return
				}
				f, _ := words(v)
				for i := 0; i+5 <= len(f); i += 5 {
					if !yield(deadLetter(f[i:])) {
						return
					}
					last, after = f[i], f[i+1]
				}
				if len(f) < 5*page {
					break
				}
			}
		}
	}
}

// deadLetter takes one from the script's answer.
func deadLetter(f []string) (DeadLetter, error) {
	r := parseRun(f[3])
	d := DeadLetter{
		ID:       f[0],
		Died:     parseTime(f[1]),
		Due:      r.due,
		Runs:     1,
		Attempts: r.attempts,
		Crashes:  r.crashes,
		Failures: parseFailures(f[4]),
	}
	if n := r.next.UnixMicro(); !r.next.IsZero() && n > 1 {
		d.Runs = int(n)
	}
	var err error
	d.Task, _, err = decode(keyOf(f[0]), f[2])
	if single(d.ID) {
		d.Task.Every, d.Task.Schedule = 0, ""
	}
	return d, err
}

// Requeue makes a dead letter a pending task again, to run at the time w, with
// all its attempts before it. Of a repeating task's runs it is the latest one, once.
// The outcome is Moved, or Absent if there is no such dead letter.
func (c *Client) Requeue(ctx context.Context, id string, w When) (Outcome, error) {
	if err := checkID(id); err != nil {
		return Unknown, err
	}
	when, err := w.arg()
	if err != nil {
		return Unknown, err
	}
	return c.single(ctx, requeueScript, id, id, when)
}

// Purge deletes a dead letter. The outcome is Removed or Absent.
func (c *Client) Purge(ctx context.Context, id string) (Outcome, error) {
	if err := checkID(id); err != nil {
		return Unknown, err
	}
	return c.single(ctx, purgeScript, id, id)
}

// checkID lets the ids of single runs pass too.
func checkID(id string) error { return checkKey(keyOf(id)) }
