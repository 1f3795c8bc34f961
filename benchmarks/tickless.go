package benchmarks

import (
	"context"
	"time"

	"github.com/tickless/tickless/timer"
)

// Tickless is a [timer.Scheduler] with default options. A slot holds a [timer.Handle].
var Tickless = Maker{Name: "tickless", New: newTickless}

type tickless struct {
	scheduler *timer.Scheduler
	handles   []timer.Handle
}

func newTickless(slots int) Impl {
	return &tickless{timer.New(), Touched[timer.Handle](slots)}
}

func (t *tickless) Start(slot int, d time.Duration, f func()) {
	h, err := t.scheduler.Start(d, f)
	if err != nil {
		panic(err) // the scheduler is not closed, and has no limit that n timers reach
	}
	t.handles[slot] = h
}

func (t *tickless) Stop(slot int) bool { return t.handles[slot].Stop() }

func (t *tickless) Reset(slot int, d time.Duration) bool { return t.handles[slot].Move(d) }

func (t *tickless) Close() { shutDown(t.scheduler) }

// TicklessTimer is a [timer.Scheduler] with default options. A slot holds a [timer.Timer],
// which has the methods of [time.Timer].
var TicklessTimer = Maker{Name: "tickless-timer", New: newTicklessTimer}

type ticklessTimer struct {
	scheduler *timer.Scheduler
	timers    []*timer.Timer
}

func newTicklessTimer(slots int) Impl {
	return &ticklessTimer{timer.New(), Touched[*timer.Timer](slots)}
}

func (t *ticklessTimer) Start(slot int, d time.Duration, f func()) {
	t.timers[slot] = t.scheduler.AfterFunc(d, f)
}

func (t *ticklessTimer) Stop(slot int) bool { return t.timers[slot].Stop() }

func (t *ticklessTimer) Reset(slot int, d time.Duration) bool { return t.timers[slot].Reset(d) }

func (t *ticklessTimer) Close() { shutDown(t.scheduler) }

func shutDown(s *timer.Scheduler) {
	s.Close()
	if err := s.Shutdown(context.Background()); err != nil {
		panic(err)
	}
}
