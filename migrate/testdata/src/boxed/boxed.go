package boxed

import (
	"fmt"
	"sync"
	"time"
)

var pool = sync.Pool{New: func() any { return time.NewTimer(time.Hour) }} // want `can be`

func get(d time.Duration) *time.Timer {
	t := pool.Get().(*time.Timer)
	t.Reset(d)
	return t
}

func put(t *time.Timer) {
	t.Stop()
	pool.Put(t)
}

func which(v any) {
	switch v := v.(type) {
	case *time.Timer:
		v.Stop()
	case fmt.Stringer:
	}
}

func all() {
	t := time.NewTimer(1) // want `stays: it becomes a value of an interface type`
	which(t)
	put(get(1))
}
