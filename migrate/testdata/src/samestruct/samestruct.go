// Package samestruct has types that are the same struct, one of them without a name.
package samestruct

import (
	"time"

	"foreign/clock"
)

type A struct{ t *time.Timer }

func result() struct{ t *time.Timer } {
	return A{time.AfterFunc(1, nil)} // want `can be`
}

type elem struct{ t *time.Timer }

func elements() {
	l := elem{time.AfterFunc(1, nil)} // want `can be`
	for _, x := range []struct{ t *time.Timer }{l} {
		x.t.Stop()
	}
	var m map[string]struct{ t *time.Timer }
	m["a"] = l
}

type sent struct{ t *time.Timer }

func channel(c chan struct{ t *time.Timer }) {
	c <- sent{time.AfterFunc(1, nil)} // want `can be`
	var got sent
	got = <-c
	got.t.Stop()
}

type ranged struct{ t *time.Timer }

func each(l []struct{ t *time.Timer }) {
	var x ranged
	for _, x = range l {
		x.t.Stop()
	}
	x.t = time.AfterFunc(1, nil) // want `can be`
}

type compared struct{ t *time.Timer }

func equal(x struct{ t *time.Timer }) bool {
	return x == compared{time.AfterFunc(1, nil)} // want `can be`
}

type several struct{ t *time.Timer }

func two() (several, bool) { return several{time.AfterFunc(1, nil)}, true } // want `can be`

func assigned() {
	var x struct{ t *time.Timer }
	x, _ = two()
	x.t.Stop()
}

type target struct{ t *time.Timer }

func converted(p *target) {
	q := (*struct{ t *time.Timer })(p)
	q.t = time.AfterFunc(1, nil) // want `can be`
}

type list []*time.Timer

func lists(ls [][]*time.Timer) {
	var l list
	for _, l = range ls {
		l[0].Stop()
	}
	l[0] = time.AfterFunc(1, nil) // want `can be`
}

type box[V any] struct{ v V }

func boxes() {
	var x struct{ v *time.Timer } = box[*time.Timer]{time.AfterFunc(1, nil)} // want `can be`
	x.v.Stop()
}

// What an unnamed struct embeds is its own.
func embeds() {
	x := struct {
		*time.Timer
		n int
	}{time.NewTimer(1), 1} // want `stays: embedded`
	x.Stop()
	var y struct{ *time.Ticker }
	y.Ticker = time.NewTicker(1) // want `can be`
	y.Stop()
}

// Another module's struct stays as it is.
func foreign() {
	u := time.AfterFunc(1, nil) // want `stays: it would not compile: cannot use struct{T`
	var f clock.Fake = struct{ T *time.Timer }{u}
	f.T.Stop()

	v := struct{ T *time.Timer }{time.AfterFunc(1, nil)} // want `stays: it would not compile: cannot use v`
	clock.Named(v)

	w := (*struct {
		T *time.Timer
		N int
	})(&clock.Pair{})
	w.T = time.AfterFunc(1, nil) // want `stays: it would not compile: cannot use timer.AfterFunc`
}
