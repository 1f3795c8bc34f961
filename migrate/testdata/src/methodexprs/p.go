package methodexprs

import (
	"time"

	"foreign/clock"
)

func called() {
	t := time.NewTimer(time.Second) // want `can be`
	(*time.Timer).Stop(t)

	k := time.NewTicker(1) // want `can be`
	((*time.Ticker).Stop)(k)
}

func kept() {
	t := time.NewTimer(1) // want `can be`
	g := (*time.Timer).Stop
	g(t)
}

func walk(f func(*time.Timer) bool, ts ...*time.Timer) {
	for _, t := range ts {
		f(t)
	}
}

func walked() {
	walk((*time.Timer).Stop, time.NewTimer(1)) // want `can be`
}

func reset() {
	t := time.AfterFunc(1, nil) // want `can be`
	(*time.Timer).Reset(t, 1)
}

// The module of Keep stays as it is.
func foreign() {
	keep := clock.Keep
	keep(time.AfterFunc(1, nil)) // want `stays: it would not compile: cannot use timer.AfterFunc`
	stop := (*time.Timer).Stop
	t := time.AfterFunc(1, nil) // want `can be`
	stop(t)
}

type short = *time.Timer

func aliased() { short.Stop(time.NewTimer(1)) } // want `can be`

type embedded struct{ *time.Timer }

func newEmbedded() {
	e := embedded{time.NewTimer(1)} // want `stays: embedded`
	embedded.Stop(e)
}
