package redistimer

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Client schedules tasks and looks after them. Make one with [New]. It may be
// used by any number of goroutines; every method that takes a context does one
// or a few round trips to Redis, retries what go-redis retries, and is O(log n)
// in the number of tasks unless it says otherwise.
type Client struct {
	redis  redis.UniversalClient
	config config
	schema string
	shards []*shard
}

// An Item is a task and when it is due, for [Client.ScheduleBatch].
type Item struct {
	Task Task
	When When
}

// New returns a Client for a queue on one Redis server, on those that Sentinels
// watch over, or on a Redis Cluster; client stays the caller's to close. New
// does not connect: [Client.Check] does. It panics if client is nil or a
// [redis.Ring], which has no scripts that survive a change of its servers.
func New(client redis.UniversalClient, opts ...Option) *Client {
	if client == nil {
		panic("redistimer: New with a nil client")
	}
	if _, ok := client.(*redis.Ring); ok {
		panic("redistimer: New: a redis.Ring cannot be used, a redis.ClusterClient can")
	}
	c := &Client{redis: client, config: newConfig(client, opts)}
	c.schema = fmt.Sprintf("%d/%d", schemaVersion, c.config.shards)
	c.shards = newShards(c.config.name, c.config.shards)
	return c
}

// Schedule puts a task into the queue, to run at the time w. If its key has a
// task already, that is replaced, unless an option says otherwise: the outcome
// is Created, Replaced, Kept or, if the task is running, Following.
//
// If the error is not nil the task may have been scheduled all the same, since
// the reply may have been lost; calling Schedule again does no harm.
func (c *Client) Schedule(ctx context.Context, t Task, w When, opts ...ScheduleOption) (Outcome, error) {
	out, err := c.ScheduleBatch(ctx, []Item{{t, w}}, opts...)
	if len(out) == 0 {
		return Unknown, err
	}
	return out[0], err
}

// ScheduleBatch schedules many tasks at the cost of few, and returns an outcome
// for each, in their order. They are sent in scripts of at most 250 tasks, each
// of which is carried out as a whole or not at all; of two items with the same
// key the later counts. If any item is invalid, none is sent. On another error
// the outcome of tasks that may or may not have been scheduled is Unknown.
func (c *Client) ScheduleBatch(ctx context.Context, items []Item, opts ...ScheduleOption) ([]Outcome, error) {
	panic("to come")
}

// Cancel takes the task with the key out: the outcome is Removed if it will not
// run because of this call, Stopping if it is running and was asked to stop, and
// Absent if there is no such task, or it is a dead letter. A repeating task does
// not repeat any more in either case.
func (c *Client) Cancel(ctx context.Context, key string) (Outcome, error) {
	out, err := c.CancelBatch(ctx, []string{key})
	if len(out) == 0 {
		return Unknown, err
	}
	return out[0], err
}

// CancelBatch cancels many tasks at the cost of few, and returns an outcome for
// each.
func (c *Client) CancelBatch(ctx context.Context, keys []string) ([]Outcome, error) {
	panic("to come")
}

// Reschedule moves a pending task to another time: the outcome is Moved. If it
// is running, it runs again at that time, and the outcome is Following. It is
// Absent if there is no such task, or it is a dead letter.
func (c *Client) Reschedule(ctx context.Context, key string, w When) (Outcome, error) {
	panic("to come")
}

// Get returns what is known of a task, or [ErrNotFound].
func (c *Client) Get(ctx context.Context, key string) (Info, error) { panic("to come") }

// Stats returns the queue's numbers, summed over its shards, which are read one
// after the other. O(shards).
func (c *Client) Stats(ctx context.Context) (Stats, error) { panic("to come") }

// Pause keeps workers from starting tasks, until Resume; what is running goes on,
// and scheduling too. O(shards).
func (c *Client) Pause(ctx context.Context) error { panic("to come") }

// Resume ends a pause. What became due meanwhile runs at once. O(shards).
func (c *Client) Resume(ctx context.Context) error { panic("to come") }

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
	// at Next, because it was scheduled anew meanwhile.
	Stopping  bool
	Following bool
	Next      time.Time
	// Failures are the latest attempts that failed, the oldest first, 10 at most.
	Failures []Failure
}

// A Failure is how an attempt ended.
type Failure struct {
	Attempt int
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
}
