package requests

import (
	"context"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/timer"
)

// A Backend is one implementation of timers under load. Each request has an index i and
// one timer. The backend allocates memory for the timers' handles before the run, so that
// this memory is not measured.
type Backend interface {
	// Name is the heading of the backend's column in the table.
	Name() string
	// Open creates what the timers need, such as a Scheduler.
	Open()
	// Start starts the timeout of request i: the callback f must run after d. Start is
	// called at most once for each i.
	Start(i int, d time.Duration, f func()) error
	// Stop stops the timeout of request i. It returns true if it prevented the callback.
	// The goroutine that called Start for i also calls Stop.
	Stop(i int) bool
	// Fired tells the backend that the callback of request i is running. The backend may
	// drop the handle, but a later Stop must still return false.
	Fired(i int)
	// Close closes the backend and returns how many timers were still pending. No Start
	// or Stop runs at the same time.
	Close() (pending int, err error)
}

// NewTime returns a backend for n requests that uses time.AfterFunc.
func NewTime(n int) Backend {
	return &stdTime{timers: make([]atomic.Pointer[time.Timer], n)}
}

// stdTime drops a timer when it fires or is stopped, to save memory. The pointers are
// atomic, because a callback may drop its timer while Stop or Close reads the pointer.
type stdTime struct {
	timers []atomic.Pointer[time.Timer]
}

func (*stdTime) Name() string { return "time.AfterFunc" }

func (*stdTime) Open() {}

func (b *stdTime) Start(i int, d time.Duration, f func()) error {
	b.timers[i].Store(time.AfterFunc(d, f))
	return nil
}

func (b *stdTime) Stop(i int) bool {
	t := b.timers[i].Load()
	if t == nil {
		return false
	}
	b.timers[i].Store(nil)
	return t.Stop()
}

func (b *stdTime) Fired(i int) { b.timers[i].Store(nil) }

func (b *stdTime) Close() (int, error) {
	pending := 0
	for i := range b.timers {
		if b.Stop(i) {
			pending++
		}
	}
	return pending, nil
}

// newTickless returns a backend for n requests that uses a timer.Scheduler with opts.
func newTickless(n int, opts ...timer.Option) *tickless {
	return &tickless{opts: opts, handles: make([]timer.Handle, n)}
}

type tickless struct {
	opts    []timer.Option
	handles []timer.Handle

	scheduler *timer.Scheduler
}

func (*tickless) Name() string { return "tickless" }

func (b *tickless) Open() { b.scheduler = timer.New(b.opts...) }

func (b *tickless) Start(i int, d time.Duration, f func()) error {
	h, err := b.scheduler.Start(d, f)
	b.handles[i] = h
	return err
}

func (b *tickless) Stop(i int) bool { return b.handles[i].Stop() }

func (*tickless) Fired(int) {}

func (b *tickless) Close() (int, error) {
	pending := 0
	b.scheduler.Close()
	for range b.scheduler.TakeLeftover() {
		pending++
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return pending, b.scheduler.Shutdown(ctx)
}
