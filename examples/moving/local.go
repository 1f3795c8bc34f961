package main

import (
	"time"

	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/timer"
)

// timerDeadlines implements the interface deadlines with timers of this process.
type timerDeadlines struct {
	scheduler *timer.Scheduler
	orders    *keyed.Timers[string, []byte]
}

func newTimerDeadlines(f expiryFunc) (deadlines, error) {
	s := timer.New()
	return &timerDeadlines{s, keyed.New(s, f)}, nil
}

func (l *timerDeadlines) Set(order string, amount []byte, d time.Duration) error {
	return l.orders.Set(order, amount, d)
}

func (l *timerDeadlines) Move(order string, d time.Duration) error {
	l.orders.Move(order, d)
	return nil
}

func (l *timerDeadlines) Remove(order string) error {
	l.orders.Remove(order)
	return nil
}

func (l *timerDeadlines) Close() error {
	l.scheduler.Close()
	return nil
}
