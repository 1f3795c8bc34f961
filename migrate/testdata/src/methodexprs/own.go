package methodexprs

import (
	"time"

	"foreign/clock"
)

type timed interface{ T() *time.Timer }

type s struct{ t *time.Timer }

func (x s) T() *time.Timer { return x.t }

var f func(timed) *time.Timer = timed.T

var g = s.T

func own() {
	x := s{time.AfterFunc(1, nil)} // want `stays: its receiver becomes a value of an interface type`
	f(x).Stop()
	g(x).Stop()
	var t *time.Timer = (*s).T(&x)
	t.Stop()
}

type box[V any] struct{ v V }

func (b *box[V]) get() V { return b.v }

func generic() {
	b := &box[*time.Timer]{time.NewTimer(1)} // want `can be`
	(*box[*time.Timer]).get(b).Stop()
}

func literal(x s) {
	interface{ T() *time.Timer }.T(x).Stop()
}

// Another module's interface cannot follow.
type other struct{}

func (other) AfterFunc(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, f) // want `stays: it would not compile: cannot use other{}`
}

func start(c clock.Clock) *time.Timer {
	h := clock.Clock.AfterFunc
	return h(c, time.Second, nil)
}

func startOther() { start(other{}).Stop() }
