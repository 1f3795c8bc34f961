package batch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

const (
	// maxCalls is the maximum number of waiting calls. maxBatch is the maximum number of
	// calls in a transaction.
	maxCalls = 8192
	maxBatch = 512
	// gatherTime is the longest time that Serve waits for more calls.
	gatherTime = 200 * time.Microsecond
)

// A Tx is a transaction.
type Tx interface {
	machine.Index
	// Now returns when the transaction began.
	Now() machine.Moment
	// CheckRows returns an error if the row of a sender or of one of some tasks is damaged.
	CheckRows(sender string, ids []string) error
}

// A Call is a function that waits to run in a transaction. Its caller must not read what
// Run writes until [Queue.Call] has returned nil.
type Call[T Tx] struct {
	// TaskIDs, Sender and Claim say which rows the call needs. A store reads the rows of
	// all calls together.
	TaskIDs []string
	Sender  string
	Claim   *store.Claim // what the call claims, or nil
	// Prepare, if not nil, runs in the transaction before any rows are read.
	Prepare func()
	Run     func(tx T) error

	state atomic.Int32
	err   error
	done  chan struct{}
}

// The states of a call.
const (
	callWaits int32 = iota
	callBegun
	callDropped
)

// Execute runs the call in tx and keeps its error for the caller. A transaction executes each of
// its calls once; after a rollback, the call may run again in another.
func (c *Call[T]) Execute(tx T) { c.err = c.Run(tx) }

// A Queue has the waiting calls of a shard.
type Queue[T Tx] struct {
	calls  chan *Call[T]
	closed <-chan struct{}
	prev   int // calls in the previous transaction
}

// New returns an empty Queue. When closed is closed, Serve returns and calls fail with
// [store.ErrClosed].
func New[T Tx](closed <-chan struct{}) *Queue[T] {
	return &Queue[T]{calls: make(chan *Call[T], maxCalls), closed: closed}
}

// Change carries out a command.
func (q *Queue[T]) Change(ctx context.Context, st store.Stamp, c store.Command) ([]store.Outcome, error) {
	if err := c.Check(&st); err != nil {
		return nil, err
	}
	c.Items = machine.CopyItems(c.Items) // the transaction may keep the items
	var checked []string
	if c.Op != store.Schedule { // which replaces damaged rows
		for i := range c.Items {
			checked = append(checked, c.Items[i].ID)
		}
	}
	var outcomes []store.Outcome // no named result: a call that goes on after an error would write it
	err := q.Call(ctx, &Call[T]{Sender: st.Sender, TaskIDs: NeededIDs(c.Items), Run: func(tx T) (err error) {
		if err := tx.CheckRows(st.Sender, checked); err != nil {
			return err
		}
		outcomes, err = machine.Change(tx, tx.Now(), &st, &c)
		return err
	}})
	if err != nil {
		return nil, err
	}
	return outcomes, nil
}

// NeededIDs returns the ids of the tasks that a command with these items looks at.
func NeededIDs(items []store.Item) (ids []string) {
	for i := range items {
		ids = append(ids, items[i].ID)
		if k, ok := items[i].Task.Keeps(); ok && k.Unique > 0 {
			ids = append(ids, store.HeadID(items[i].ID))
		}
	}
	return ids
}

// Do carries out a worker's round.
func (q *Queue[T]) Do(ctx context.Context, st store.Stamp, r store.Round) (store.Answer, error) {
	if err := r.Check(&st); err != nil {
		return store.Answer{}, err
	}
	c := &Call[T]{Sender: st.Sender}
	if r.Claim.Asked {
		c.Claim = &r.Claim
	}
	for i := range r.Reports {
		c.TaskIDs = append(c.TaskIDs, r.Reports[i].ID)
		if r.Reports[i].Keep {
			c.TaskIDs = append(c.TaskIDs, store.HeadID(store.KeyOf(r.Reports[i].ID)))
		}
	}
	for i := range r.Extend {
		c.TaskIDs = append(c.TaskIDs, r.Extend[i].ID)
	}
	var answer store.Answer // no named result, as in Change
	c.Run = func(tx T) (err error) {
		if err := tx.CheckRows(st.Sender, nil); err != nil {
			return err
		}
		answer, err = machine.Do(tx, tx.Now(), &st, &r)
		return err
	}
	if err := q.Call(ctx, c); err != nil {
		return store.Answer{}, err
	}
	return answer, nil
}

// Call runs a call. It returns after the commit, or when the context ends. An error wraps
// [store.ErrNotDone] if the call surely had no effect.
func (q *Queue[T]) Call(ctx context.Context, c *Call[T]) error {
	if err := store.Ended(ctx); err != nil {
		return err
	}
	c.done = make(chan struct{})
	select {
	case q.calls <- c:
	default:
		return store.ErrBusy
	}
	select {
	case <-c.done:
		return c.err
	case <-q.closed:
	case <-ctx.Done():
		if c.state.CompareAndSwap(callWaits, callDropped) {
			return store.Ended(ctx)
		}
		return fmt.Errorf("store: %w", ctx.Err())
	}
	if c.state.CompareAndSwap(callWaits, callDropped) {
		return store.ErrClosed
	}
	<-c.done
	return c.err
}

// Serve runs the calls until the Queue is closed. transact passes its calls to Begin and
// executes them in one transaction, which it rolls back if it panics. It returns
// maybeCommitted if the transaction may have been committed despite an error. splits
// reports whether an error may be the fault of a single call.
func (q *Queue[T]) Serve(log *slog.Logger, transact func(calls []*Call[T]) (maybeCommitted bool, err error), splits func(error) bool) {
	for {
		select {
		case <-q.closed:
			return
		case c := <-q.calls:
			run(log, q.gather(c), transact, splits)
		}
	}
}

// gather returns the waiting calls. To save a sync, it first waits up to gatherTime for as
// many calls as the previous transaction had.
func (q *Queue[T]) gather(first *Call[T]) []*Call[T] {
	for begin := time.Now(); len(q.calls)+1 < q.prev && time.Since(begin) < gatherTime; {
		runtime.Gosched()
	}
	calls := []*Call[T]{first}
	for n := len(q.calls); n > 0 && len(calls) < maxBatch; n-- {
		calls = append(calls, <-q.calls)
	}
	q.prev = len(calls)
	return calls
}

// Begin returns the calls whose callers still wait, or that have begun before. From now on
// they run to their end.
func Begin[T Tx](calls []*Call[T]) (begun []*Call[T]) {
	for _, c := range calls {
		if c.state.CompareAndSwap(callWaits, callBegun) || c.state.Load() == callBegun {
			begun = append(begun, c)
		}
	}
	return begun
}

// Waiting reports whether the caller of one of the calls still waits.
func Waiting[T Tx](calls []*Call[T]) bool {
	for _, c := range calls {
		if c.state.Load() != callDropped {
			return true
		}
	}
	return false
}

// errPanic is the error of calls whose transaction panicked.
var errPanic = errors.New("store: a panic, which the log shows")

func run[T Tx](log *slog.Logger, calls []*Call[T], transact func([]*Call[T]) (bool, error), splits func(error) bool) {
	maybeCommitted, err := protect(log, calls, transact)
	calls = Begin(calls) // without those that were dropped
	if err != nil && !maybeCommitted && len(calls) > 1 && (errors.Is(err, errPanic) || splits(err)) {
		for _, c := range calls {
			run(log, []*Call[T]{c}, transact, splits)
		}
		return
	}
	for _, c := range calls {
		if err != nil {
			c.err = err
		}
		if err != nil && !maybeCommitted && !errors.Is(err, store.ErrNotDone) {
			c.err = fmt.Errorf("%w: %w", err, store.ErrNotDone)
		}
		close(c.done)
	}
}

// protect turns a panic of transact into an error. The commit cannot panic, so nothing was
// committed.
func protect[T Tx](log *slog.Logger, calls []*Call[T], transact func([]*Call[T]) (bool, error)) (maybeCommitted bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("store: a transaction panicked and was rolled back", "panic", v, "stack", string(debug.Stack()))
			maybeCommitted, err = false, fmt.Errorf("%w: %v", errPanic, v)
		}
	}()
	return transact(calls)
}

// A failure is the value with which Must panics.
type failure struct{ err error }

// Must panics if err is not nil. A function that defers Recover then returns err.
func Must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Recover turns a panic of Must into an error.
func Recover(err *error) {
	switch v := recover().(type) {
	case nil:
	case failure:
		*err = v.err
	default:
		panic(v)
	}
}
