package timer

import (
	"context"
	"runtime/pprof"
	"sync"

	"github.com/tickless/tickless/internal/latch"
)

// WithDropHandler sets a function that is called with each callback that the executor
// has refused, and with the executor's error: f may run the callback, count it or log
// it. It is the callback as it was given: its panic, if f runs it, is f's, and it is
// nil if AfterFunc was given a nil func. Without a handler such callbacks are only
// counted, as Dropped in [Stats]. The default executor refuses none. WithDropHandler
// panics if f is nil.
//
// f runs on a goroutine of its own, which lives while there is something to tell, for
// one callback after the other. A Job goes on meanwhile: f may have its callback while the
// next run of the Job begins, or after its Stop. [Scheduler.Shutdown] waits for f. A panic
// of f is not recovered.
func WithDropHandler(f func(callback func(), err error)) Option {
	if f == nil {
		panic("timer: WithDropHandler: the func must not be nil")
	}
	return option(func(c *config) { c.onDrop = f })
}

// drops brings refused callbacks to the handler. It does so beside those who submit:
// they may hold a shard's lock.
type drops struct {
	handler func(callback func(), err error) // fixed; nil: nobody asks

	// telling is held while the goroutine lives.
	telling latch.Latch

	mu      sync.Mutex
	waiting []drop
	alive   bool
}

type drop struct {
	f   func()
	err error
}

func (ds *drops) add(f func(), err error) {
	if ds.handler == nil {
		return
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.waiting = append(ds.waiting, drop{f, err})
	if !ds.alive {
		ds.alive = true
		ds.telling.Add(1)
		go ds.tell()
	}
}

// tell calls the handler until nothing waits. Should the handler end the goroutine,
// another one goes on.
func (ds *drops) tell() {
	pprof.SetGoroutineLabels(context.Background()) // not those of who has started a timer
	over := false
	defer func() {
		if !over {
			go ds.tell()
			return
		}
		ds.telling.Add(-1)
	}()
	for {
		ds.mu.Lock()
		if len(ds.waiting) == 0 {
			ds.waiting, ds.alive, over = nil, false, true
			ds.mu.Unlock()
			return
		}
		d := ds.waiting[0]
		ds.waiting[0] = drop{}
		ds.waiting = ds.waiting[1:]
		ds.mu.Unlock()
		ds.handler(d.f, d.err)
	}
}
