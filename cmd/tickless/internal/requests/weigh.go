package requests

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/measure"
)

// Held is what it takes to keep timers pending.
type Held struct {
	Timers    int           `json:"timers"`
	HeapBytes int64         `json:"heap_bytes"` // alive with the timers pending, above what was before
	FullGC    time.Duration `json:"full_gc_ns"` // how long a collection takes with the timers pending
}

// BytesPerTimer returns the live heap bytes a pending timer, the caller's
// handle and callback not counted.
func (h Held) BytesPerTimer() float64 { return float64(h.HeapBytes) / float64(h.Timers) }

// Weigh starts n timers on b, all far away and all with the same callback,
// weighs the heap, and closes b, which must be fresh. It stands apart from
// the load because a collection at the load's peak would show in how late the
// load's timers are.
func Weigh(ctx context.Context, b Backend, n int) (Held, error) {
	baseline, _ := measure.LiveHeap()
	b.Open()
	var (
		wg     sync.WaitGroup
		nprocs = runtime.GOMAXPROCS(0)
		errs   = make([]error, nprocs)
	)
	for w := range nprocs {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil && ctx.Err() == nil; i += nprocs {
				errs[w] = b.Start(i, time.Hour+time.Duration(i)*time.Millisecond, func() {})
			}
		})
	}
	wg.Wait()
	live, took := measure.LiveHeap()
	pending, err := b.Close()
	if err := errors.Join(append(errs, err)...); err != nil {
		return Held{}, fmt.Errorf("%s: %w", b.Name(), err)
	}
	if ctx.Err() != nil {
		return Held{}, ctx.Err()
	}
	if pending != n {
		return Held{}, fmt.Errorf("%s: %d of %d timers were pending", b.Name(), pending, n)
	}
	return Held{Timers: n, HeapBytes: live - baseline, FullGC: took}, nil
}
