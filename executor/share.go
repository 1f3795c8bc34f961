package executor

import (
	"context"
	"runtime/pprof"

	"github.com/tickless/tickless/internal/share"
)

func init() { share.Of = func(p any) share.Pool { return (*sharer)(p.(*Pool)) } }

// A sharer is a Pool to package timer: see [share.Pool].
type sharer Pool

// Share counts the calling goroutine in as a worker, with a batch of its own. That batch
// waits in the queue, too: other workers take from it when its turn comes.
func (s *sharer) Share(fs []func()) (w share.Work, err error) {
	p := (*Pool)(s)
	if len(fs) == 0 {
		return w, nil
	}
	if p.max != unbounded {
		_, err := p.SubmitBatch(fs)
		return w, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		p.rejected += uint64(len(fs))
		return w, ErrClosed
	}
	w = share.Work{Pool: s, First: fs[0]}
	p.submitted += uint64(len(fs))
	p.workers++
	p.peak = max(p.peak, p.workers)
	p.limit++ // until it retires
	if len(fs) > 1 {
		b := p.queue.add()
		b.n = int32(copy(b.funcs[:], fs))
		b.take() // it is First
		b.holders++
		w.Rest = b
		p.queue.push(fs[b.n:])
	}
	return w, nil
}

func (s *sharer) Watch() {
	p := (*Pool)(s)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchLocked()
}

func (s *sharer) Run(w share.Work) {
	p := (*Pool)(s)
	p.label()
	// The goroutine may be anybody's, and its own labels cannot be found out.
	defer pprof.SetGoroutineLabels(context.Background())
	b, _ := w.Rest.(*batch)
	p.run(w.First, b)
}
