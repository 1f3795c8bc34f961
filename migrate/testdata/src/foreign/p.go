package foreign

import (
	"time"

	"foreign/clock"
)

func all() {
	t := time.NewTimer(1) // want `stays: it would not compile: cannot use t`
	t.Stop()
	clock.Keep(t)

	u := clock.Start()
	u = time.NewTimer(1) // want `stays: it would not compile: cannot use timer.NewTimer`
	u.Stop()

	f := clock.Fake{T: time.NewTimer(1)} // want `stays: it would not compile: cannot use timer.NewTimer`
	f.T.Stop()

	v := time.NewTimer(1) // want `can be`
	v.Stop()
}

type real struct{}

func (real) AfterFunc(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, f) // want `stays: it would not compile: cannot use real{}`
}

func use() { clock.Use(real{}) }
