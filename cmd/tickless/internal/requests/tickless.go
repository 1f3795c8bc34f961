package requests

import (
	"context"
	"time"

	"github.com/tickless/tickless/timer"
)

// NewTickless returns a backend for n requests that uses a timer.Scheduler with these
// options.
func NewTickless(n int, opts ...timer.Option) Backend { return newTickless(n, opts...) }

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
