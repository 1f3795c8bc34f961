// Package genericvalues has generic functions that are values.
package genericvalues

import "time"

func first[T any](ts ...T) T { return ts[0] }

func pair[K, V any](k K, v V) (K, V) { return k, v }

func started[T any](v T) (*time.Timer, T) { return time.NewTimer(1), v } // want `can be`

func values() {
	f := first[*time.Timer]
	f(time.NewTimer(1)).Stop() // want `can be`

	g := pair[int, *time.Ticker]
	_, t := g(1, time.NewTicker(1)) // want `can be`
	t.Stop()

	h := started[*time.Timer]
	a, b := h(time.NewTimer(1)) // want `can be`
	a.Stop()
	b.Stop()

	Kept = first[*time.Timer]
	Kept(time.NewTimer(1)).Stop() // want `stays: Kept is exported: another package may use it`
}

// Kept keeps its type.
var Kept func(...*time.Timer) *time.Timer
