package main

import (
	"time"

	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/timer"
)

// local implements the interface deadlines with timers of this process.
type local struct {
	scheduler *timer.Scheduler
	orders    *keyed.Timers[string, []byte]
}

func newLocal(f expiry) (deadlines, error) {
	s := timer.New()
	return &local{s, keyed.New(s, f)}, nil
}

func (l *local) Set(order string, amount []byte, d time.Duration) error {
	return l.orders.Set(order, amount, d)
}

func (l *local) Move(order string, d time.Duration) error {
	l.orders.Move(order, d)
	return nil
}

func (l *local) Remove(order string) error {
	l.orders.Remove(order)
	return nil
}

func (l *local) Close() error {
	l.scheduler.Close()
	return nil
}
