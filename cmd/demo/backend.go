package main

import (
	"context"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/timer"
)

// A Backend runs the timers of a load. Each request has an index i and one timer.
type Backend interface {
	// Name is the heading of the backend's column in the table.
	Name() string
	// Open creates what the timers need, such as a Scheduler.
	Open()
	// Start starts the timeout of request i: the callback f must run after d. Start is
	// called at most once for each i.
	Start(i int, d time.Duration, f func()) error
	// Stop stops the timer of request i and reports whether it prevented the callback.
	// The goroutine that called Start calls Stop.
	Stop(i int) bool
	// ForgetTimer is called by the callback of request i. The backend may then forget the
	// timer, but a later Stop must return false.
	ForgetTimer(i int)
	// Close closes the backend and returns how many timers were still pending. No Start
	// or Stop runs at the same time.
	Close() (pending int, err error)
}

// NewStdBackend returns a backend for n requests that uses time.AfterFunc.
func NewStdBackend(n int) Backend {
	return &stdBackend{timers: make([]atomic.Pointer[time.Timer], n)}
}

// stdBackend drops a timer that has fired or was stopped, to save memory. The pointers
// are atomic: a callback and Stop may use one pointer at the same time.
type stdBackend struct {
	timers []atomic.Pointer[time.Timer]
}

func (*stdBackend) Name() string { return "time.AfterFunc" }

func (*stdBackend) Open() {}

func (b *stdBackend) Start(i int, d time.Duration, f func()) error {
	b.timers[i].Store(time.AfterFunc(d, f))
	return nil
}

func (b *stdBackend) Stop(i int) bool {
	t := b.timers[i].Load()
	if t == nil {
		return false
	}
	b.timers[i].Store(nil)
	return t.Stop()
}

func (b *stdBackend) ForgetTimer(i int) { b.timers[i].Store(nil) }

func (b *stdBackend) Close() (int, error) {
	numPending := 0
	for i := range b.timers {
		if b.Stop(i) {
			numPending++
		}
	}
	return numPending, nil
}

// newTicklessBackend returns a backend for n requests that uses a timer.Scheduler with
// opts.
func newTicklessBackend(n int, opts ...timer.Option) *ticklessBackend {
	return &ticklessBackend{opts: opts, handles: make([]timer.Handle, n)}
}

type ticklessBackend struct {
	opts    []timer.Option
	handles []timer.Handle // by request; made before the run, which measures memory

	scheduler *timer.Scheduler
}

func (*ticklessBackend) Name() string { return "tickless" }

func (b *ticklessBackend) Open() { b.scheduler = timer.New(b.opts...) }

func (b *ticklessBackend) Start(i int, d time.Duration, f func()) error {
	h, err := b.scheduler.Start(d, f)
	b.handles[i] = h
	return err
}

func (b *ticklessBackend) Stop(i int) bool { return b.handles[i].Stop() }

func (*ticklessBackend) ForgetTimer(int) {}

func (b *ticklessBackend) Close() (int, error) {
	numPending := 0
	b.scheduler.Close()
	for range b.scheduler.TakeLeftover() {
		numPending++
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return numPending, b.scheduler.Shutdown(ctx)
}
