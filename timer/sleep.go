package timer

import (
	"context"
	"runtime"
	"strings"
	"time"
)

// Sleep pauses the calling goroutine for at least d. A d of zero or less returns
// at once. Sleep returns early if the Scheduler is closed meanwhile. If it was
// closed before, Sleep pauses all the same, on package time or on the clock that was
// given by [WithClock].
func (s *Scheduler) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	s.mustNotStopAdvance()
	z := newSleeper()
	if _, _, err := s.place(s.now(), d, nodePayload(&z.node), tagNode); err != nil {
		// There is no error to return. Were it not to sleep, a loop that waits
		// between two attempts would wait no more.
		s.clock.NewAlarm(func() { close(z.wakeUp) }).Reset(d)
	}
	<-z.wakeUp
}

// SleepContext pauses the calling goroutine for at least d, and returns nil. It
// returns early with the error of ctx if that ends first, and with [ErrClosed] if the
// Scheduler is closed meanwhile, or was before. For a d of zero or less it returns at
// once, with the error of ctx if that has ended.
func (s *Scheduler) SleepContext(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	s.mustNotStopAdvance()
	z := newSleeper()
	sh, id, err := s.place(s.now(), d, nodePayload(&z.node), tagNode)
	if err != nil {
		return err
	}
	select {
	case <-z.wakeUp:
	case <-ctx.Done():
		sh.mu.Lock()
		stopped := sh.stopLocked(id)
		sh.unlock()
		if stopped {
			return ctx.Err()
		}
		<-z.wakeUp // it has fired, or Close has it
	}
	if z.abandoned {
		return ErrClosed
	}
	return nil
}

// mustNotStopAdvance panics in a callback that Advance of timertest's clock runs. Advance
// waits for the callback, which would wait for Advance.
func (s *Scheduler) mustNotStopAdvance() {
	if s.system {
		return
	}
	pcs := make([]uintptr, 100)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for more := true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); strings.HasSuffix(f.Function, "/timertest.(*Clock).advanceLocked") {
			panic("timer: a callback that a virtual clock's Advance runs sleeps on that clock, which stands still meanwhile:" +
				" sleep on another goroutine, or test in a testing/synctest bubble with the system's clock")
		}
	}
}

// SleepContext is [Scheduler.SleepContext] on the default Scheduler.
func SleepContext(ctx context.Context, d time.Duration) error {
	if s, _ := outsideBubble(); s != nil {
		return s.SleepContext(ctx, d)
	}
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sleeper is a goroutine in Sleep.
type sleeper struct {
	node
	wakeUp    chan struct{}
	abandoned bool // written before wakeUp is closed
}

func newSleeper() *sleeper {
	z := &sleeper{wakeUp: make(chan struct{})}
	z.owner = z
	return z
}

func (z *sleeper) expireLocked(*shard, moment) func() {
	close(z.wakeUp)
	return nil
}

func (z *sleeper) pendingFunc() func() { return nil }

func (z *sleeper) abandon() {
	z.abandoned = true
	close(z.wakeUp)
}
