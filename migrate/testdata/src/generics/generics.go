package generics

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"foreign/clock"
)

type box[T any] struct{ v T }

func (b *box[T]) get() T { return b.v }

func first[T any](ts ...T) T { return ts[0] }

func stopAll[T interface{ Stop() bool }](ts []T) {
	for _, t := range ts {
		t.Stop()
	}
}

type oneOf interface{ *time.Timer | *time.Ticker }

func named[T oneOf](t T) T { return t }

type holder struct {
	current atomic.Pointer[time.Timer]
	boxed   box[*time.Timer]
	once    func() *time.Timer
}

func (h *holder) start() {
	h.current.Store(time.NewTimer(1)) // want `can be`
	h.boxed = box[*time.Timer]{v: h.current.Load()}
	h.boxed.get().Stop()
	h.once = sync.OnceValue(func() *time.Timer { return time.NewTimer(1) }) // want `can be`
	h.once().Stop()
	stopAll([]*time.Timer{time.NewTimer(1)})      // want `stays: never stopped: package time frees it`
	first(time.NewTimer(1), nil).Stop()           // want `can be`
	clock.First(time.NewTimer(1)).Stop()          // want `can be`
	first[*time.Ticker](time.NewTicker(1)).Stop() // want `can be`
	named(time.NewTimer(1)).Stop()                // want `time.NewTimer can be timer.NewTimer`
}

// A constraint that is made of type parameters only takes either type.
func sorted() {
	ts := []*time.Timer{time.NewTimer(1)} // want `can be`
	slices.Reverse(ts)
	slices.IndexFunc(ts, func(t *time.Timer) bool { return t.Stop() })
}
