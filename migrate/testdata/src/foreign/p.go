package foreign

import (
	"time"

	"foreign/clock"
)

func all() {
	t := time.NewTimer(1) // want `time.NewTimer stays: Keep of package foreign/clock has package time's type`
	t.Stop()
	clock.Keep(t)

	u := clock.Start()
	u = time.NewTimer(1) // want `stays: Start of package foreign/clock`
	u.Stop()

	f := clock.Fake{T: time.NewTimer(1)} // want `stays: T of package foreign/clock`
	f.T.Stop()

	v := time.NewTimer(1) // want `can be`
	v.Stop()
}

type real struct{}

func (real) AfterFunc(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, f) // want `stays: AfterFunc of package foreign/clock`
}

func use() { clock.Use(real{}) }
