package foreign

import (
	"time"

	"foreign/clock"
)

type asked struct{}

func (asked) NewTimer(d time.Duration) *time.Timer {
	return time.NewTimer(d) // want `stays: its receiver becomes a value of an interface type`
}

func (asked) newTicker(d time.Duration) *time.Ticker {
	return time.NewTicker(d) // want `can be`
}

func ask() {
	clock.Print(asked{})
	asked{}.NewTimer(1).Stop()
	asked{}.newTicker(1).Stop()
}
