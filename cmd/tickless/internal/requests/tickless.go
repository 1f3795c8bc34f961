package requests

import (
	"context"
	"fmt"
	"time"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

// Executors names the executors that NewTickless knows, its default first.
var Executors = []string{"pool", "goroutine", "inline"}

// NewTickless returns a backend for n requests on a timer.Scheduler of the
// given tick (zero means the scheduler's own), slack and executor.
func NewTickless(n int, tick, slack time.Duration, exec string) Backend {
	return &tickless{tick: tick, slack: slack, exec: exec, handles: make([]timer.Handle, n)}
}

type tickless struct {
	tick    time.Duration
	slack   time.Duration
	exec    string
	more    []timer.Option
	handles []timer.Handle

	scheduler *timer.Scheduler
}

func (*tickless) Name() string { return "tickless" }

func (b *tickless) Open() error {
	var opts []timer.Option
	switch b.exec {
	case "pool": // the Scheduler's own
	case "goroutine":
		opts = append(opts, timer.WithExecutor(executor.NewGoroutines()))
	case "inline":
		opts = append(opts, timer.WithExecutor(executor.NewInline()))
	default:
		return fmt.Errorf("no executor is named %q", b.exec)
	}
	if b.slack != 0 {
		opts = append(opts, timer.WithSlack(0, b.slack, b.slack))
	}
	if b.tick != 0 {
		opts = append(opts, timer.WithTick(b.tick))
	}
	b.scheduler = timer.New(append(opts, b.more...)...)
	return nil
}

func (b *tickless) Start(i int, d time.Duration, f func()) error {
	h, err := b.scheduler.Start(d, f)
	b.handles[i] = h
	return err
}

func (b *tickless) Stop(i int) bool { return b.handles[i].Stop() }

func (*tickless) Fired(int) {}

func (b *tickless) Wakeups() (uint64, bool) { return b.scheduler.Stats().Wakeups, true }

func (b *tickless) Close() (int, error) {
	pending := 0
	b.scheduler.Close()
	for range b.scheduler.Leftover() {
		pending++
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := b.scheduler.Shutdown(ctx)
	return pending, err
}
