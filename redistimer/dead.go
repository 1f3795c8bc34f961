package redistimer

import (
	"context"
	"iter"
	"time"
)

// A DeadLetter is a run that failed for good: its attempts were used up, its
// handler said [NoRetry], it crashed its workers too often, or it was missed. It
// stays until it is requeued, purged or scheduled anew.
type DeadLetter struct {
	// ID names the dead letter in [Client.Requeue] and [Client.Purge]. It is the
	// key, but for a run of a repeating task, which goes on without it.
	ID       string
	Task     Task
	Died     time.Time
	Due      time.Time
	Attempts int
	Crashes  int
	Failures []Failure // the latest attempts, the oldest first
}

// DeadLetters goes over all dead letters, shard by shard and within a shard by
// the time of their death. It reads them in pages of 100; those that come or go
// meanwhile may be missed, or seen twice. An error ends it.
func (c *Client) DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error] { panic("to come") }

// Requeue makes a dead letter a pending task again, to run at the time w, with
// all its attempts before it. The outcome is Moved, or Absent if there is no such
// dead letter.
func (c *Client) Requeue(ctx context.Context, id string, w When) (Outcome, error) { panic("to come") }

// Purge deletes a dead letter. The outcome is Removed or Absent.
func (c *Client) Purge(ctx context.Context, id string) (Outcome, error) { panic("to come") }
