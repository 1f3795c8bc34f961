package requests

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
	// Fired is called by the callback of request i. The backend may then forget the
	// timer, but a later Stop must return false.
	Fired(i int)
	// Close closes the backend and returns how many timers were still pending. No Start
	// or Stop runs at the same time.
	Close() (pending int, err error)
}

// NewTime returns a backend for n requests that uses time.AfterFunc.
func NewTime(n int) Backend {
	return &stdTime{timers: make([]atomic.Pointer[time.Timer], n)}
}

// stdTime drops a timer that has fired or was stopped, to save memory. The pointers are
// atomic: a callback and Stop may use one at the same time.
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
	handles []timer.Handle // by request; made before the run, which measures memory

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
