package group

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
)

const (
	// maxCalls is the maximum number of waiting calls. maxGroup is the maximum number of
	// calls in a transaction.
	maxCalls = 8192
	maxGroup = 512
	// gatherTime is the longest time that Serve waits for more calls.
	gatherTime = 200 * time.Microsecond
)

// A Call is a function that waits to run in a transaction. Its caller must not change what
// Run writes until Do has returned nil.
type Call[T any] struct {
	// TaskIDs, Sender and Claim say which rows the call needs. A store reads the rows of
	// all calls together.
	TaskIDs []string
	Sender  string
	Claim   *store.Claim // what the call claims, or nil
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

// Execute runs the call in tx and keeps its error for the caller. A transaction executes
// each of its calls once.
func (c *Call[T]) Execute(tx T) { c.err = c.Run(tx) }

// A Queue has the waiting calls of a shard.
type Queue[T any] struct {
	calls  chan *Call[T]
	closed <-chan struct{}
	prev   int // calls in the previous transaction
}

// New returns an empty Queue. When closed is closed, Serve returns and calls fail with
// [store.ErrClosed].
func New[T any](closed <-chan struct{}) *Queue[T] {
	return &Queue[T]{calls: make(chan *Call[T], maxCalls), closed: closed}
}

// Do runs a call. It returns after the commit, or when the context ends. An error wraps
// [store.ErrNotDone] if the call surely had no effect.
func (q *Queue[T]) Do(ctx context.Context, c *Call[T]) error {
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

// Serve runs the calls until the Queue is closed. transact executes calls in one
// transaction. It returns maybeCommitted if the transaction may have been committed
// despite an error. splits reports whether an error may be the fault of a single call.
func (q *Queue[T]) Serve(log *slog.Logger, transact func(calls []*Call[T]) (maybeCommitted bool, err error), splits func(error) bool) {
	for {
		select {
		case <-q.closed:
			return
		case c := <-q.calls:
			if calls := begin(q.gather(c)); len(calls) > 0 {
				run(log, calls, transact, splits)
			}
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
	for n := len(q.calls); n > 0 && len(calls) < maxGroup; n-- {
		calls = append(calls, <-q.calls)
	}
	q.prev = len(calls)
	return calls
}

// begin returns the calls whose callers still wait. From now on they run to their end.
func begin[T any](calls []*Call[T]) (begun []*Call[T]) {
	for _, c := range calls {
		if c.state.CompareAndSwap(callWaits, callBegun) {
			begun = append(begun, c)
		}
	}
	return begun
}

// errPanic is the error of calls whose transaction panicked.
var errPanic = errors.New("store: a panic, which the log shows")

func run[T any](log *slog.Logger, calls []*Call[T], transact func([]*Call[T]) (bool, error), splits func(error) bool) {
	maybeCommitted, err := protect(log, calls, transact)
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

// protect turns a panic of transact, which must roll back, into an error. The commit cannot
// panic, so nothing was committed.
func protect[T any](log *slog.Logger, calls []*Call[T], transact func([]*Call[T]) (bool, error)) (maybeCommitted bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("store: a transaction panicked and was rolled back", "panic", v, "stack", string(debug.Stack()))
			maybeCommitted, err = false, fmt.Errorf("%w: %v", errPanic, v)
		}
	}()
	return transact(calls)
}
