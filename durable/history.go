package durable

import (
	"context"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/internal/record"
	"github.com/tickless/tickless/durable/store"
)

// Retention says which finished runs of a key are kept for [Client.Runs], both
// successful and failed ones. The zero Retention keeps none.
type Retention struct {
	// For is how long a run is kept. Zero means until newer runs replace it.
	For time.Duration `json:"for_ns,omitempty"`
	// Runs is how many of the latest runs are kept, up to [store.MaxRuns]. Zero means
	// no limit.
	Runs int `json:"runs,omitempty"`
}

// MaxResult is the largest size of a result, in bytes: see [Delivery.SetResult].
const MaxResult = 4 << 10

// A Run is a finished run that is kept.
type Run struct {
	Key     string `json:"key"`
	Handler string `json:"handler"`
	// Done is true for a run that succeeded and false for one that failed for good.
	Done bool      `json:"done"`
	Due  time.Time `json:"due"`
	// Began is when the last attempt was claimed. It is zero if that is not known: the run
	// failed without a call of the handler, or its last attempt crashed.
	Began time.Time `json:"began,omitzero"`
	Ended time.Time `json:"ended"`
	// Attempts, Crashes and Failures are about all attempts at the run.
	Attempts int       `json:"attempts"`
	Crashes  int       `json:"crashes,omitempty"`
	Failures []Failure `json:"failures,omitempty"`
	// Result is what the last attempt gave to [Delivery.SetResult].
	Result []byte `json:"result,omitempty"`
}

// Runs returns the runs of a key that are kept, the latest first: see [Task.Retention].
// On memstore it reads the whole shard.
func (c *Client) Runs(ctx context.Context, key string) ([]Run, error) {
	if err := checkID(key); err != nil {
		return nil, err
	}
	key = store.KeyOf(key)
	now, err := c.store.Now(ctx, c.shardOf(key))
	if err != nil {
		return nil, clientError(err)
	}
	var runs []Run
	f := store.Filter{State: store.Past, Prefix: store.RunsPrefix(key), From: now + 1}
	for cursor := (store.Cursor{}); ; {
		p, err := c.store.List(ctx, c.shardOf(key), f, cursor, store.MaxPage)
		if err != nil {
			return nil, clientError(err)
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

// A RunsPage is a part of a list of runs. Next is empty on the last page.
type RunsPage struct {
	Runs []Run  `json:"runs"`
	Next Cursor `json:"next,omitempty"`
}

// RunsPage returns the next of the runs of all keys that are kept, the latest first, at most
// limit, which must be from 1 to 1000. From and To of the filter limit Run.Ended, and Prefix
// the key. The filter's State must be zero or Past. after is empty, or the Next of a page
// with the same filter. Like [Client.Page] it may have few runs, and yet a Next.
func (c *Client) RunsPage(ctx context.Context, f Filter, after Cursor, limit int) (RunsPage, error) {
	now, err := c.latestNow(ctx)
	if err != nil {
		return RunsPage{}, err
	}
	filter := f.storeFilter()
	filter.Runs = true
	var p RunsPage
	p.Next, err = c.readPage(ctx, filter, after, limit, func(e *store.Entry) bool {
		r := runOf(e)
		if r == nil || e.At <= store.TimeOf(now) {
			return false
		}
		p.Runs = append(p.Runs, *r)
		return true
	})
	if err != nil {
		return RunsPage{}, err
	}
	return p, nil
}

// runOf returns the run that an entry contains, or nil.
func runOf(e *store.Entry) *Run {
	done, ended, result, ok := store.ParseRun(e.Record)
	if !ok {
		return nil
	}
	r := &Run{Key: store.KeyOf(e.ID), Handler: e.Handler, Done: done, Due: e.Due.Std(), Ended: ended.Std(),
		Attempts: e.Attempts, Crashes: e.Crashes, Failures: failuresOf(e)}
	if began, b, ok := record.ParseResult(result); ok {
		r.Began, r.Result = began.Std(), slices.Clone(b)
	}
	return r
}

// isRunCounter reports whether e is the entry that counts the kept runs of its key.
func isRunCounter(e *store.Entry) bool {
	return e.State == store.Past && e.ID == store.HeadID(store.KeyOf(e.ID))
}

// SetResult sets the run's result for [Client.Runs]. It is kept if the run ends with this
// attempt, as a success or a dead letter, and the task has a [Task.Retention]. The error is an
// [ErrInvalid] if b has more than [MaxResult] bytes.
func (d *Delivery) SetResult(b []byte) error {
	if len(b) > MaxResult {
		return invalidError("the result has %d bytes, more than %d", len(b), MaxResult)
	}
	if d.result != nil {
		*d.result = slices.Clone(b)
	}
	return nil
}
