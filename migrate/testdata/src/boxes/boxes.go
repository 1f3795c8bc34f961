// Package boxes has values that become interface values, of which some are left.
package boxes

import (
	"fmt"
	"time"
)

// API keeps its type.
type API struct{ T *time.Timer }

func api() {
	a := API{time.AfterFunc(1, nil)} // want `stays: T is part of the API of package boxes`
	take(a.T)
}

func take(v any) {
	if t, ok := v.(*time.Timer); ok {
		t.Stop()
	}
}

func other() {
	t := time.AfterFunc(1, nil) // want `stays: a type assertion may return it, or another timer that is not rewritten: T is part of the API of package boxes`
	take(t)
}

// Only a value of its own type can be what a type assertion gets.
func list() {
	l := []*time.Timer{time.AfterFunc(1, nil)} // want `can be`
	take(l)
	fmt.Println(any(l).([]*time.Timer)[0].Stop())
}

func starters(v any) {
	if f, ok := v.(func(d time.Duration, f func()) *time.Timer); ok {
		f(1, nil)
	}
}

func start() { starters(time.AfterFunc) } // want `can be`

func compared() bool {
	t := time.NewTicker(1) // want `stays: Ticker is part of the API of package boxes`
	defer t.Stop()
	Ticker = t
	var x any = time.NewTicker(1) // want `stays: a type assertion may return it, or another timer that is not rewritten: Ticker is part of the API`
	return x == t
}

// Ticker keeps its type.
var Ticker *time.Ticker
