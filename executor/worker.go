package executor

import (
	"runtime"
	"runtime/pprof"
	"time"
)

// startLocked counts in the workers that the queue needs now and arms the
// watchdog if some callbacks must wait. The caller passes the result to spawn
// once it has released the lock.
func (p *Pool) startLocked() int {
	need := p.queue.len() - p.starting
	n := max(0, min(need, p.limit-p.workers))
	p.workers += n
	p.starting += n
	p.peak = max(p.peak, p.workers+p.sharing)
	if need > n && p.base < p.max {
		p.watch.arm(p)
	}
	return n
}

// armsLocked reports whether startLocked would arm the watchdog with k more callbacks in
// the queue.
func (p *Pool) armsLocked(k int) bool {
	return !p.watch.armed && p.base < p.max && p.queue.len()+k-p.starting > max(0, p.limit-p.workers)
}

func (p *Pool) spawn(n int) {
	for range n {
		go p.start()
	}
}

// label gives the goroutine the pool's labels, in place of those of the goroutine that
// has started it, which belong to other work.
func (p *Pool) label() { pprof.SetGoroutineLabels(p.labels) }

// work is a worker's goroutine.
func (p *Pool) work() {
	p.label()
	p.mu.Lock()
	if p.starting--; p.starting == 0 {
		p.watch.soonLocked(p)
	}
	p.runLocked(nil)
}

// runLocked runs callbacks until there are no more. It is called with the
// lock held, returns without it, and gives back batch b first, which may be
// nil.
//
// The recover stands here, outside the loop, so that a callback pays nothing
// for it. A callback that panics, or calls runtime.Goexit (a test's FailNow),
// ends this goroutine, and another takes its place with the same count and
// the same batch: to everybody else nothing has happened.
func (p *Pool) runLocked(b *batch) {
	ended := false
	at := turn{lap: p.watch.lap}
	var began time.Time // when the last callback began, since callbacks take long
	defer func() {
		if ended {
			return
		}
		// Deferred in its turn: the handler may call runtime.Goexit too.
		defer func() {
			b := b // a copy, so that the worker's own stays off the heap
			go func() {
				p.label() // it has those that the callback has set
				p.mu.Lock()
				p.runLocked(b)
			}()
		}()
		if v := recover(); v != nil {
			p.report(v)
		}
	}()
	for {
		// The lock is held here.
		if b != nil {
			p.queue.release(b)
		}
		if p.watch.surplus(&at, p.base) && p.workers > p.base {
			p.limit = max(p.base, min(p.limit, p.workers-1))
			break
		}
		var f func()
		var ok bool
		if b, f, ok = p.queue.take(); !ok {
			break
		}
		p.passRoomLocked()
		p.mu.Unlock()
		if began.IsZero() && p.yields.Load() {
			began = time.Now()
		}
		for f(); b != nil; f() {
			if p.yields.Load() {
				began = p.yield(began)
			}
			if f, ok = b.take(); !ok {
				break
			}
			if p.waiting.Load() > 0 {
				p.mu.Lock()
				p.passRoomLocked()
				p.mu.Unlock()
			}
		}
		p.mu.Lock()
	}
	p.retireLocked()
	p.mu.Unlock()
	ended = true
}

// yield lets other goroutines run if a callback that began at a moment took long, and
// returns when the next one begins.
func (p *Pool) yield(began time.Time) time.Time {
	now := time.Now()
	if began.IsZero() || now.Sub(began) < slowCallback {
		return now
	}
	runtime.Gosched()
	return time.Now()
}

// retireLocked counts a worker out. It leaves submitters free to start a base
// of workers beside those that are still held up: while a thousand callbacks
// block, the next one starts its worker at once instead of waiting for the
// watchdog. As the blocked come back and end here, the limit falls to the base
// again.
func (p *Pool) retireLocked() {
	p.workers--
	p.limit = max(p.base, min(p.limit, p.workers+p.base))
	p.finishLocked()
}
