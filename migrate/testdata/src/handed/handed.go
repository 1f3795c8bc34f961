package handed

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"foreign/clock"
)

// What is made for an argument is not stopped, although what is taken out of the
// pool is.
func print(d time.Duration) string {
	clock.Print(time.NewTicker(d))             // want `stays: it becomes a value of an interface type`
	return fmt.Sprintf("%T", time.NewTimer(d)) // want `time.NewTimer stays: never stopped`
}

var pool = sync.Pool{New: func() any { return time.NewTimer(time.Hour) }} // want `can be`

func get() *time.Timer { return pool.Get().(*time.Timer) }

func put(d time.Duration) {
	get().Stop()
	pool.Put(time.NewTimer(d)) // want `can be`
	t := time.NewTimer(d)      // want `can be`
	fmt.Println(t)
	t.Stop()
}

// A finalizer's function has the type of what it is for.
func finalized() {
	t := time.NewTimer(1) // want `stays: it becomes a value of an interface type`
	runtime.SetFinalizer(t, func(t *time.Timer) { t.Stop() })
	t.Stop()
}
