package durable

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Retention says which runs of a task's key are kept when they have ended, done or failed
// for good: see [Client.Runs]. The zero Retention keeps none.
type Retention struct {
	// For is for how long a run is kept. Workers forget what is older, some with each claim.
	For time.Duration `json:"for_ns,omitempty"`
	// Runs is how many are kept, the latest ones, up to [store.MaxRuns]; zero is no limit. If
	// For is zero they are kept until others take their places: for ever, if the key is not
	// used again.
	Runs int `json:"runs,omitempty"`
}

// MaxResult is the largest size of what [Delivery.SetResult] takes.
const MaxResult = 4 << 10

// A Run is a run that has ended, and is kept.
type Run struct {
	Key     string `json:"key"`
	Handler string `json:"handler"`
	// Done is false for a run that failed for good.
	Done bool      `json:"done"`
	Due  time.Time `json:"due"`
	// Began is when the attempt was claimed that was done; zero if the run failed.
	Began time.Time `json:"began,omitzero"`
	Ended time.Time `json:"ended"`
	// Attempts, Crashes and Failures are those of the run.
	Attempts int       `json:"attempts"`
	Crashes  int       `json:"crashes,omitempty"`
	Failures []Failure `json:"failures,omitempty"`
	// Result is what the handler of a run that was done said by [Delivery.SetResult].
	Result []byte `json:"result,omitempty"`
}

// Runs returns the runs of a key that are kept, as [Task.Retention] says, the latest first.
// On memstore it looks at all that its shard has.
func (c *Client) Runs(ctx context.Context, key string) ([]Run, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	now, err := c.store.Now(ctx, c.shardOf(key))
	if err != nil {
		return nil, explain(err)
	}
	var runs []Run
	f := store.Filter{State: store.Past, Prefix: store.RunsPrefix(key), From: now + 1}
	for cursor := (store.Cursor{}); ; {
		p, err := c.store.List(ctx, c.shardOf(key), f, cursor, store.MaxPage)
		if err != nil {
			return nil, explain(err)
		}
		for i := range p.Entries {
			if r := runOf(&p.Entries[i]); r != nil {
				runs = append(runs, *r)
			}
		}
		if cursor = p.Next; cursor == (store.Cursor{}) {
			break
		}
	}
	slices.SortFunc(runs, func(a, b Run) int { return b.Ended.Compare(a.Ended) })
	return runs, nil
}

// runOf returns the run that an entry is, or nil.
func runOf(e *store.Entry) *Run {
	done, ended, result, ok := store.ParseRun(e.Record)
	if !ok {
		return nil
	}
	r := &Run{Key: store.KeyOf(e.ID), Handler: e.Handler, Done: done, Due: e.Due.Std(), Ended: ended.Std(),
		Attempts: e.Attempts, Crashes: e.Crashes, Failures: failuresOf(e)}
	if began, err := strconv.ParseInt(string(result[:min(beganSize, len(result))]), 10, 64); err == nil {
		r.Began = store.Time(began).Std()
		r.Result = slices.Clone(result[beganSize:])
	}
	return r
}

// beganSize is the size of what is in front of a result: when it began, in digits.
const beganSize = 16

// isHead reports whether an entry only counts the runs of a key.
func isHead(e *store.Entry) bool {
	return e.State == store.Past && e.ID == store.HeadID(store.KeyOf(e.ID))
}

// SetResult has a result kept with the run, if it is done and the task has a
// [Task.Retention]: see [Client.Runs]. It returns [ErrInvalid] if the result has more than
// [MaxResult] bytes.
func (d *Delivery) SetResult(b []byte) error {
	if len(b) > MaxResult {
		return invalid("a result of %d bytes, more than %d", len(b), MaxResult)
	}
	if d.result != nil {
		*d.result = slices.Clone(b)
	}
	return nil
}
