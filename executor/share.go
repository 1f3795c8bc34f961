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

// Share makes the calling goroutine a worker that holds a batch of fs. The batch is also
// in the queue, so that other workers may help.
func (s *sharer) Share(fs []func()) (w share.Work, err error) {
	p := (*Pool)(s)
	if len(fs) == 0 {
		return w, nil
	}
	if p.maxWorkers != noLimit {
		_, err := p.SubmitBatch(fs)
		return w, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		p.rejectedCount += uint64(len(fs))
		return w, ErrClosed
	}
	w = share.Work{Pool: s, First: fs[0]}
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
		if !p.watchdog.isTimerSet {
			p.noteStateLocked() // for Watch
		}
	}
	return w, nil
}

func (s *sharer) Watch() {
	p := (*Pool)(s)
	p.mu.Lock()
	if p.watchdog.isTimerSet || time.Since(p.watchdog.timerSetAt) < checkInterval {
		p.setWatchdogLocked()
		p.mu.Unlock()
		return
	}
	p.checkAndUnlock()
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
