package interfaces

import (
	"time"

	"foreign/later"
)

type starter interface {
	AfterFunc(d time.Duration, f func()) *time.Timer
	ticker() *time.Ticker
}

type real struct{}

func (real) AfterFunc(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, f) // want `can be`
}

func (real) ticker() *time.Ticker { return time.NewTicker(1) } // want `can be`

type fake struct{ last *time.Timer }

func (f *fake) AfterFunc(d time.Duration, g func()) *time.Timer {
	f.last = time.AfterFunc(d, g) // want `can be`
	return f.last
}

func (f *fake) ticker() *time.Ticker { return nil }

func use(s starter) {
	s.AfterFunc(1, nil).Stop()
	s.ticker().Stop()
}

func all() {
	use(real{})
	use(&fake{})
}

// An interface that only has a timer's methods holds either.
type stopper interface{ Stop() bool }

func stop(s stopper) { s.Stop() }

func stopOne() { stop(time.NewTimer(1)) } // want `can be`

// Another module's interface cannot follow.
type other struct{}

func (other) Later(d time.Duration) *time.Timer { return time.NewTimer(d) } // want `stays: it would not compile: cannot use other{}`

var _ later.Later = other{}
