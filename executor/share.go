package executor

import (
	"context"
	"runtime/pprof"
	"time"

	"github.com/tickless/tickless/internal/share"
)

func init() { share.PoolOf = func(p any) share.Pool { return (*sharer)(p.(*Pool)) } }

// A sharer is a Pool with the methods of [share.Pool], for package timer.
type sharer Pool

// If the next call of Share comes within maxUnwatched, it notices slow callbacks. Then the
// watchdog's timer is not set: at 1,000 calls a second, that would wake a thread each time.
const maxUnwatched = 2 * time.Millisecond

// Share makes the calling goroutine a worker that holds a batch of fs. The batch is also
// in the queue, so that other workers may help.
func (s *sharer) Share(fs []func(), nextCall time.Duration) (w share.Work, err error) {
	p := (*Pool)(s)
	if p.maxWorkers != noLimit {
		_, err := p.SubmitBatch(fs)
		return w, err
	}
	p.mu.Lock()
	newWorkers := p.checkIfUnwatchedLocked()
	switch {
	case len(fs) == 0:
	case p.closed:
		p.rejectedCount += uint64(len(fs))
		err = ErrClosed
	default:
		w = p.shareLocked(fs)
	}
	if nextCall > maxUnwatched {
		p.setWatchdogLocked()
	} else if w.Batch != nil && !p.watchdog.isTimerSet {
		p.noteStateLocked()
	}
	p.mu.Unlock()
	p.spawnWorkers(newWorkers)
	return w, err
}

func (p *Pool) shareLocked(fs []func()) share.Work {
	w := share.Work{Pool: (*sharer)(p), First: fs[0]}
	p.submittedCount += uint64(len(fs))
	p.workerCount++
	p.peakWorkers = max(p.peakWorkers, p.workerCount)
	p.workerLimit++ // until the worker ends
	if len(fs) > 1 {
		b := p.queue.appendBatch()
		b.n = int32(copy(b.funcs[:], fs))
		b.takeCallback() // the callback in w.First
		b.holderCount++
		w.Batch = b
		p.queue.pushCallbacks(fs[b.n:])
	}
	return w
}

func (s *sharer) Run(w share.Work) {
	p := (*Pool)(s)
	p.setLabels()
	// Clear the pool's labels at the end. The caller's own labels cannot be restored,
	// because they cannot be read.
	defer pprof.SetGoroutineLabels(context.Background())
	b, _ := w.Batch.(*batch)
	p.runCallbacks(w.First, b)
}
