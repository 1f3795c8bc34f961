package executor

import (
	"context"
	"runtime/pprof"

	"go.uber.org/atomic"
)

// A Share holds callbacks that the goroutine which submitted them will run itself.
type Share struct {
	p     *Pool
	first func()
	rest  *share // nil if there is no more
}

// Share submits fs as SubmitBatch does, but the calling goroutine runs them: it must
// soon call the Share's Run. No other goroutine has to wake up for short callbacks.
// It is for callers that find work in small pieces on a goroutine of their own, such
// as a scheduler's poller. The caller may reuse the slice after the return.
//
// The callbacks do not wait behind those in the queue. If one of them takes long, the
// watchdog moves those behind it to the queue, so they wait for milliseconds at most.
// On a pool with [WithMaxWorkers] or [WithQueue], Share does what SubmitBatch does,
// and Run does nothing. After Shutdown it accepts nothing.
func (p *Pool) Share(fs []func()) (s Share, accepted int, err error) {
	if p.bound != unbounded || p.max != unbounded {
		accepted, err = p.SubmitBatch(fs)
		return Share{}, accepted, err
	}
	if len(fs) == 0 {
		return Share{}, 0, nil
	}
	p.mu.Lock()
	if p.home.Any() && !p.closed || len(fs) > 1 && !p.watch.armed {
		p.mustBeAtHomeLocked()
	}
	defer p.mu.Unlock()
	if p.closed {
		p.rejected += uint64(len(fs))
		return Share{}, 0, ErrClosed
	}
	s = Share{p: p, first: fs[0]}
	p.submitted += uint64(len(fs))
	p.shared += uint64(len(fs))
	p.sharing++
	p.peak = max(p.peak, p.workers+p.sharing)
	if len(fs) > 1 {
		s.rest = p.shares.add(fs[1:], p.watch.lap)
		p.watch.arm(p)
		p.watch.soonLocked(p)
	}
	return s, len(fs), nil
}

// Run runs the callbacks, and no others: see [Pool.Help]. It recovers their panics, as a
// worker does. If one panics or ends the goroutine with runtime.Goexit, another goroutine
// runs those behind it. Call Run exactly once for each Share that Pool.Share returns. The
// zero Share does nothing.
//
// Run reports whether Help would do something now.
func (s Share) Run() (helps bool) {
	if s.p == nil {
		return false
	}
	s.p.label()
	// It may be anybody's goroutine. What labels it had cannot be found out.
	defer pprof.SetGoroutineLabels(context.Background())
	return s.p.runShare(s.first, s.rest)
}

// runShare runs first and what is left of a share, which may be nil. It reports what Run
// does.
func (p *Pool) runShare(first func(), s *share) (helps bool) {
	ended := false
	defer func() {
		if !ended {
			go func() {
				p.label() // it has those that the callback has set
				p.runShare(nop, s)
			}()
		}
	}()
	defer p.catch()
	first()
	if s != nil {
		for f, ok := s.take(); ok; f, ok = s.take() {
			f()
		}
	}
	p.mu.Lock()
	p.sharing--
	if s != nil {
		p.shares.remove(s)
	}
	if p.watch.armed && !p.waitingLocked() {
		p.restLocked()
	}
	p.finishLocked()
	helps = p.wantsHelpLocked()
	p.mu.Unlock()
	ended = true
	return helps
}

func nop() {}

// wantsHelpLocked reports whether callbacks wait for workers that have yet to begin.
func (p *Pool) wantsHelpLocked() bool {
	return p.queue.len() > 0 && p.max == unbounded && p.workers-p.starting < p.limit
}

// Help runs callbacks until none waits in the queue, if some wait for workers that were
// started and have yet to begin. Else it does nothing. Where other goroutines compute,
// such a worker waits for a processor for as long as a round of them takes, and the
// calling goroutine has one: so this is for one that has run a Share, and for whose end
// nobody waits. While it runs callbacks it counts as a worker, beside those that
// [WithWorkers] allows. On a pool with [WithMaxWorkers] it does nothing.
//
// (A goroutine that it started in its place would be the next to run on its processor,
// but only until a timer starts another: then it would wait behind all others.)
func (p *Pool) Help() {
	p.mustBeMade()
	p.mu.Lock()
	if !p.wantsHelpLocked() {
		p.mu.Unlock()
		return
	}
	p.workers++
	p.peak = max(p.peak, p.workers+p.sharing)
	p.label()
	// It may be anybody's goroutine: see Share.Run.
	defer pprof.SetGoroutineLabels(context.Background())
	p.runLocked(nil)
}

// waitingLocked reports whether any callback waits.
func (p *Pool) waitingLocked() bool { return p.queue.len() > 0 || p.shares.left() > 0 }

// share is a Share's callbacks but for the first.
//
// Its goroutine takes from it without the lock, one at a time; the watchdog takes
// all that are left, with it. Only the goroutine removes it.
type share struct {
	next  atomic.Int32 // the callback to take next; runs past the end
	funcs []func()
	lap   uint // the watchdog's, when it was made
	index int  // in shares.all, or -1
}

// take claims the next callback and clears its slot.
func (s *share) take() (f func(), ok bool) {
	i := int(s.next.Inc() - 1)
	if i >= len(s.funcs) {
		return nil, false
	}
	f = s.funcs[i]
	s.funcs[i] = nil
	return f, true
}

// left returns how many callbacks wait in the share.
func (s *share) left() int { return max(0, len(s.funcs)-int(s.next.Load())) }

// takeAll claims all that are left. The caller clears the slots.
func (s *share) takeAll() []func() {
	const end = 1 << 30 // far from where take would wrap
	i := min(int(s.next.Swap(end)), len(s.funcs))
	return s.funcs[i:]
}

// shares are those whose goroutine may take more, with some spare ones. The pool's lock
// guards them.
type shares struct {
	all   []*share
	spare []*share
}

// maxSpareShares bounds the shares kept for reuse, maxSpareFuncs their memory.
const (
	maxSpareShares = 8
	maxSpareFuncs  = 4 * batchSize
	minShares      = 256 // is room that all keeps
)

func (ss *shares) add(fs []func(), lap uint) *share {
	var s *share
	if last := len(ss.spare) - 1; last >= 0 {
		s = ss.spare[last]
		ss.spare = ss.spare[:last]
	} else {
		s = new(share)
	}
	s.funcs = append(s.funcs[:0], fs...)
	s.lap = lap
	s.next.Store(0)
	s.index = len(ss.all)
	ss.all = append(ss.all, s)
	return s
}

// takeOut takes a share of which nothing is left out of all, if it is there still. Its
// goroutine may be long in coming back, so nobody should look at it over and over.
func (ss *shares) takeOut(s *share) {
	if s.index < 0 {
		return
	}
	last := len(ss.all) - 1
	ss.all[s.index] = ss.all[last]
	ss.all[s.index].index = s.index
	ss.all[last] = nil
	ss.all = ss.all[:last]
	s.index = -1
	if cap(ss.all) > minShares && last <= cap(ss.all)/4 {
		ss.all = append(make([]*share, 0, cap(ss.all)/2), ss.all...)
	}
}

// takeOutAll does so with all shares, while nothing is left of any.
func (ss *shares) takeOutAll() {
	for len(ss.all) > 0 {
		ss.takeOut(ss.all[len(ss.all)-1])
	}
}

// remove forgets a share whose goroutine is done with it.
func (ss *shares) remove(s *share) {
	ss.takeOut(s)
	if len(ss.spare) < maxSpareShares && cap(s.funcs) <= maxSpareFuncs {
		ss.spare = append(ss.spare, s)
	}
}

// left returns how many callbacks wait in all shares.
func (ss *shares) left() int {
	n := 0
	for _, s := range ss.all {
		n += s.left()
	}
	return n
}

// adoptLocked puts into the queue what is left of shares that were made before the
// watchdog's last check, and reports whether there was anything: a callback lasts, or
// its goroutine does not get to run.
func (p *Pool) adoptLocked() bool {
	adopted := false
	for i := 0; i < len(p.shares.all); {
		s := p.shares.all[i]
		if s.lap == p.watch.lap {
			i++
			continue
		}
		if fs := s.takeAll(); len(fs) > 0 {
			p.queue.pushAll(fs)
			p.shared -= uint64(len(fs))
			clear(fs)
			adopted = true
		}
		p.shares.takeOut(s) // another comes to its place
	}
	return adopted
}
