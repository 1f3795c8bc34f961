// Package clock is another module's.
package clock

import "time"

const Zero = 0

type Clock interface {
	AfterFunc(time.Duration, func()) *time.Timer
}

type Fake struct{ T *time.Timer }

func Keep(*time.Timer)           {}
func Start() *time.Timer         { return nil }
func Print(...any)               {}
func Use(Clock)                  {}
func First[T any](ts ...T) (t T) { return ts[0] }

type Pair struct {
	T *time.Timer
	N int
}

func Named(Fake) {}

type Starter struct{}

func (Starter) Start() *time.Timer { return nil }
