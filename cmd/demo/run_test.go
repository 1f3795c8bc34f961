package main

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

func config() Config {
	return Config{Count: 2000, Duration: 100 * time.Millisecond, StopRatio: 0.5,
		MinDelay: 10 * time.Millisecond, MaxDelay: 50 * time.Millisecond, Seed: 7}
}

// A faulty backend violates guarantees. The measurement must notice this.
type faulty struct {
	Backend
	start func(i int, d time.Duration, f func()) (time.Duration, func())
	stop  func(i int, ok bool) bool
	err   error
}

func (b faulty) Start(i int, d time.Duration, f func()) error {
	if b.err != nil {
		return b.err
	}
	if b.start != nil {
		d, f = b.start(i, d, f)
	}
	return b.Backend.Start(i, d, f)
}

func (b faulty) Stop(i int) bool {
	ok := b.Backend.Stop(i)
	if b.stop != nil {
		return b.stop(i, ok)
	}
	return ok
}

func runFaulty(t *testing.T, b faulty) (Result, error) {
	t.Helper()
	p, err := NewPlan(config())
	if err != nil {
		t.Fatal(err)
	}
	return p.Run(t.Context(), b)
}

func TestRun_NoticesLostTimers(t *testing.T) {
	p, err := NewPlan(config())
	if err != nil {
		t.Fatal(err)
	}
	unanswered := slices.Index(p.answerAt, never)
	r, err := p.Run(t.Context(), faulty{Backend: NewStdBackend(2000),
		start: func(i int, d time.Duration, f func()) (time.Duration, func()) {
			if i == unanswered {
				f = func() {}
			}
			return d, f
		}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Lost != 1 {
		t.Errorf("lost %d, want 1", r.Lost)
	}
}

func TestRun_NoticesEarlyTimers(t *testing.T) {
	c := config()
	c.StopRatio, c.MinDelay, c.MaxDelay = 0, time.Hour, time.Hour
	p, err := NewPlan(c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Run(t.Context(), faulty{Backend: NewStdBackend(2000),
		start: func(_ int, _ time.Duration, f func()) (time.Duration, func()) { return 0, f }})
	if err != nil {
		t.Fatal(err)
	}
	if r.Early != 2000 || r.Late.P50 >= 0 {
		t.Errorf("early %d, half of them by more than %v", r.Early, -r.Late.P50)
	}
}

func TestRun_NoticesTimersThatFireTwice(t *testing.T) {
	r, err := runFaulty(t, faulty{Backend: NewStdBackend(2000),
		start: func(i int, d time.Duration, f func()) (time.Duration, func()) {
			return d, func() {
				f()
				if i%10 == 0 {
					f()
				}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	if r.FiredTwiceOrAfterStop == 0 {
		t.Error("Wrong is 0")
	}
}

// A timer that never fires is counted as lost, even if another timer fires twice.
func TestRun_LostAlthoughAnotherFiresTwice(t *testing.T) {
	p, err := NewPlan(config())
	if err != nil {
		t.Fatal(err)
	}
	often := slices.Index(p.answerAt, never)
	lost := often + 1 + slices.Index(p.answerAt[often+1:], never)
	r, err := p.Run(t.Context(), faulty{Backend: newTicklessBackend(2000),
		start: func(i int, d time.Duration, f func()) (time.Duration, func()) {
			switch i {
			case often:
				return d, func() {
					for range 1 + 2000 {
						f()
					}
				}
			case lost:
				return d, func() {}
			}
			return d, f
		}})
	if err != nil {
		t.Fatal(err)
	}
	if r.FiredTwiceOrAfterStop != 2000 || r.Lost != 1 || r.Pending != 0 {
		t.Errorf("fired too often %d, lost %d, pending %d; want 2000, 1, 0", r.FiredTwiceOrAfterStop, r.Lost, r.Pending)
	}
}

func TestRun_NoticesTimersThatFireAfterStop(t *testing.T) {
	r, err := runFaulty(t, faulty{Backend: deaf{NewStdBackend(2000)}, stop: func(int, bool) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	if r.FiredTwiceOrAfterStop == 0 {
		t.Error("Wrong is 0")
	}
}

// deaf is a backend whose Stop does nothing.
type deaf struct{ Backend }

func (deaf) Stop(int) bool { return false }

func TestRun_ReturnsErrorsOfStart(t *testing.T) {
	want := errors.New("no room")
	if _, err := runFaulty(t, faulty{Backend: NewStdBackend(2000), err: want}); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestRun_SameLoadForEveryBackend(t *testing.T) {
	p, err := NewPlan(config())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []Backend{newTicklessBackend(2000), NewStdBackend(2000), newTicklessBackend(2000, timer.WithTick(time.Millisecond), timer.WithExecutor(executor.NewInline()))} {
		r, err := p.Run(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		if r.Started != 2000 || r.Fired+r.Stopped != 2000 || r.Lost != 0 || r.Early != 0 || r.FiredTwiceOrAfterStop != 0 || r.Interrupted {
			t.Errorf("%s: %+v", b.Name(), r)
		}
	}
}

// endingAt returns a backend that calls end when the given request is started.
func endingAt(request int, b Backend, end func()) Backend {
	return faulty{Backend: b, start: func(i int, d time.Duration, f func()) (time.Duration, func()) {
		if i == request {
			end()
		}
		return d, f
	}}
}

func TestRun_Interrupted(t *testing.T) {
	c := config()
	c.Duration = time.Minute
	c.Count = 100_000
	p, err := NewPlan(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []Backend{newTicklessBackend(c.Count), NewStdBackend(c.Count)} {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := p.Run(ctx, endingAt(100, b, cancel))
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if !r.Interrupted || r.Lost != 0 || r.Started == 0 || r.Started != r.Fired+r.Stopped+r.Pending {
			t.Errorf("%s: %+v", b.Name(), r)
		}
	}
}
