package durable

import (
	"context"
	"iter"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Info is what is known of a task.
type Info struct {
	// ID names the task in [Client.Get], [Client.Reschedule] and [Client.Cancel]. It is the
	// key, but for what shares the key with a repeating task: its dead letter, and a run of
	// it that was requeued. Their IDs begin with the key and a NUL: that is the
	// [Filter.Prefix] which lists them.
	ID    string `json:"id"`
	Task  Task   `json:"task"`
	State State  `json:"state"` // in JSON "pending", "running" or "dead"
	// At is when it runs next if it is pending, when its lease ends if it is
	// running, and when it died if it is dead.
	At time.Time `json:"at"`
	// Due is when the run was to begin: the same as At if it is pending and has
	// not been tried.
	Due time.Time `json:"due"`
	// Attempts and Crashes count what has been tried of the present run.
	Attempts int `json:"attempts,omitempty"`
	Crashes  int `json:"crashes,omitempty"`
	// Stopping: it runs and was asked to stop. Following: it runs, and will again,
	// at Next, because it was scheduled again meanwhile; Task is still what runs.
	Stopping  bool      `json:"stopping,omitempty"`
	Following bool      `json:"following,omitempty"`
	Next      time.Time `json:"next,omitzero"`
	// Failures are the latest attempts that failed, the oldest first, 10 at most.
	Failures []Failure `json:"failures,omitempty"`
}

// A Failure is how an attempt ended.
type Failure struct {
	Attempt int       `json:"attempt"` // from 1; 0 if the run failed before its handler was called first
	Time    time.Time `json:"time"`    // by the store's clock
	Error   string    `json:"error"`   // its first 400 bytes
}

func infoOf(e *store.Entry) (Info, error) {
	info := Info{
		ID:        e.ID,
		State:     e.State,
		At:        e.At.Std(),
		Due:       e.Due.Std(),
		Attempts:  e.Attempts,
		Crashes:   e.Crashes,
		Stopping:  e.Stopping,
		Following: e.Following,
		Failures:  failuresOf(e),
	}
	if e.Following {
		info.Next = e.Next.Std()
	}
	var err error
	info.Task, _, err = decode(&e.Task)
	return info, err
}

func failuresOf(e *store.Entry) []Failure {
	var out []Failure
	for _, f := range e.Failures {
		out = append(out, Failure{Attempt: f.Attempt, Time: f.Time.Std(), Error: f.Text})
	}
	return out
}

// Get returns what is known of the task with a key, or with an [Info.ID], or
// [ErrNotFound].
func (c *Client) Get(ctx context.Context, id string) (Info, error) {
	if err := checkID(id); err != nil {
		return Info{}, err
	}
	e, err := c.store.Get(ctx, c.shardOf(id), id)
	if err != nil {
		return Info{}, explain(err)
	}
	return infoOf(&e)
}

// A Filter says which tasks [Client.List] goes over: those that meet all of its fields
// that are not zero.
type Filter struct {
	State   State
	Handler string
	Prefix  string // of the ID, and so of the key
	// From and To limit Info.At: from From on, and before To.
	From, To time.Time
}

// List goes over the tasks that meet a filter, shard by shard, and within a shard by
// State, At and key. It reads them in pages of 100; those that come, go or move
// meanwhile may be missed, or seen twice. An error of the store ends it, and comes with
// no Task; a task that cannot be decoded comes with an error and its key, and the others
// follow. O(n) where a page costs what it holds; on memstore each page looks at all tasks
// of its shard.
func (c *Client) List(ctx context.Context, f Filter) iter.Seq2[Info, error] {
	stored := store.Filter{State: f.State, Handler: f.Handler, Prefix: f.Prefix}
	if !f.From.IsZero() {
		stored.From = store.TimeOf(f.From)
	}
	if !f.To.IsZero() {
		stored.To = store.TimeOf(f.To)
		if stored.To <= 0 {
			return func(func(Info, error) bool) {} // before 1970 there is nothing, and 0 is no limit
		}
	}
	return func(yield func(Info, error) bool) {
		for e, err := range c.entries(ctx, stored) {
			if err != nil {
				yield(Info{}, err)
				return
			}
			if !yield(infoOf(&e)) {
				return
			}
		}
	}
}

// entries goes over the entries of all shards. An error comes last.
func (c *Client) entries(ctx context.Context, f store.Filter) iter.Seq2[store.Entry, error] {
	const page = 100
	return func(yield func(store.Entry, error) bool) {
		for shard := range c.store.Shards() {
			for cursor := store.Cursor(""); ; {
				p, err := c.store.List(ctx, shard, f, cursor, page)
				if err != nil {
					yield(store.Entry{}, explain(err))
					return
				}
				for _, e := range p.Entries {
					if !yield(e, nil) {
						return
					}
				}
				if cursor = p.Next; cursor == "" {
					break
				}
			}
		}
	}
}
