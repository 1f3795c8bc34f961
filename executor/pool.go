package executor

import (
	"cmp"
	"context"
	"sync"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/internal/bubble"
	"github.com/tickless/tickless/internal/callback"
	"github.com/tickless/tickless/internal/latch"
)

// A Pool runs callbacks on few goroutines while they are short, and on as
// many as it takes when they block.
//
// It starts up to its base of workers ([WithWorkers]) as work comes in. They take one
// callback at a time, in the order of submission, and end as soon as nothing waits:
// an idle pool has no goroutine. While callbacks wait, a watchdog checks every
// millisecond whether they wait for workers that are held up. If so it multiplies the
// workers. While callbacks take long, a worker of a pool without [WithMaxWorkers] lets the
// process's other goroutines run between two of them. A goroutine that finds work in small
// pieces may run it by itself, and then help the workers: see [Pool.Share] and
// [Pool.Help]. Make one with [NewPool].
//
// It is not a limiter by itself: unless [WithMaxWorkers] says so, callbacks
// that block get a goroutine each, with a delay of a few milliseconds.
type Pool struct {
	guard // first, for the alignment of its count: see guard

	// waiting is how many submitters wait for room. It changes under mu;
	// workers read it without, after they have taken a callback.
	waiting atomic.Int32

	// yields says that callbacks take long, or do not get to run, and that workers so let
	// others run after each that takes long: see tick.
	yields atomic.Bool

	base, max, bound int
	overload         Overload
	onCheck          func()          // nil, or see callback.OnCheck
	onCrowd          func()          // nil, or see callback.OnCrowd
	labels           context.Context // of workers
	home             bubble.Home     // the testing/synctest bubble in which it was made, if any
	start            func()          // p.work as a value: a go statement on it allocates nothing

	mu sync.Mutex
	// Guarded by mu.
	queue     queue
	shares    shares
	room      sync.Cond // there may be room for one of the waiting submitters
	submitted uint64
	rejected  uint64
	callerRan uint64
	workers   int // started and not ended; the peak is the most there have been
	peak      int
	starting  int    // of workers, those that have not taken their first callback
	limit     int    // submitters start workers up to here: see tick and retireLocked
	callers   int    // submitters that run a callback themselves
	sharing   int    // goroutines that run a Share
	shared    uint64 // callbacks of Shares that were never in the queue
	watch     watchdog
	closed    bool
	finished  bool
	// done is closed when finished. In a bubble it is nil unless somebody waits: nobody may
	// close it when that is over.
	done chan struct{}
}

var _ Batcher = (*Pool)(nil)

func init() {
	callback.OnCheck = func(p any, f func()) { p.(*Pool).onCheck = f }
	callback.OnCrowd = func(p any, f func()) { p.(*Pool).onCrowd = f }
	callback.PrintPanic = printPanic
}

// NewPool returns a pool. It starts no goroutine before there is work.
//
// A pool made inside a testing/synctest bubble belongs to that bubble. Elsewhere, what is
// submitted to it ends the process, as use of a bubble's timers of package time does, until
// it is closed. So does whoever closes it elsewhere while a submitter waits for room. One that
// was made outside must not be used inside: it panics there when a callback would have to
// wait, and else its workers could run callbacks of both sides.
func NewPool(opts ...PoolOption) *Pool {
	c := newPoolConfig(opts)
	p := &Pool{
		base:     c.workers,
		max:      c.maxWorkers,
		bound:    c.queue,
		overload: c.overload,
		labels:   cmp.Or(c.labels, context.Background()),
		home:     bubble.Here(),
		limit:    c.workers,
	}
	if !p.home.Any() {
		p.done = make(chan struct{})
	}
	p.handler = c.panicHandler
	p.room.L = &p.mu
	p.start = p.work
	p.watch.init(p.tick)
	return p
}

// Submit hands f to the pool. When the queue is full, the overload policy decides.
func (p *Pool) Submit(f func()) error {
	p.mu.Lock()
	if p.closed || p.waiting.Load() > 0 || p.roomLocked() == 0 {
		p.mu.Unlock()
		_, err := p.SubmitBatch([]func(){f})
		return err
	}
	if p.home.Any() || p.armsLocked(1) {
		p.mustBeAtHomeLocked()
	}
	p.queue.push(f)
	p.submitted++
	n := p.startLocked()
	p.mu.Unlock()
	p.spawn(n)
	return nil
}

// SubmitBatch hands fs to the pool, in order. When the queue is full before the end
// of fs, the overload policy decides about the rest: [Block] adds them as room
// appears, [CallerRuns] runs one and tries again, [Reject] refuses them all.
func (p *Pool) SubmitBatch(fs []func()) (accepted int, err error) {
	p.mustBeMade()
	for err == nil && accepted < len(fs) {
		p.mu.Lock()
		if p.home.Any() && !p.closed {
			p.mustBeAtHomeLocked()
		}
		if p.overload == Block {
			p.awaitRoomLocked()
		}
		if !p.closed {
			n := min(p.roomLocked(), len(fs)-accepted)
			if p.armsLocked(n) {
				p.mustBeAtHomeLocked()
			}
			p.queue.pushAll(fs[accepted : accepted+n])
			p.submitted += uint64(n)
			accepted += n
		}
		var here bool
		if accepted < len(fs) {
			here, err = p.overloadedLocked(len(fs) - accepted)
		}
		n := p.startLocked()
		p.passRoomLocked()
		p.mu.Unlock()

		p.spawn(n)
		if here {
			accepted++
			p.runHere(fs[accepted-1])
		}
	}
	return accepted, err
}

// Close refuses new work, releases the submitters that wait for room with
// [ErrClosed], and returns nil. It waits for nothing: callbacks that were accepted run
// to their end.
func (p *Pool) Close() error {
	p.mustBeMade()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		p.room.Broadcast()
	}
	p.finishLocked()
	return nil
}

// Shutdown does what Close does, and waits for every accepted callback to end. When it
// has returned nil no worker is left. If ctx ends first it returns the error of ctx;
// the callbacks still run to their end. Any number of goroutines may call it, any
// number of times: each call waits. A callback that calls it waits for itself, until
// ctx ends.
func (p *Pool) Shutdown(ctx context.Context) error {
	p.Close()
	p.mu.Lock()
	if p.finished {
		p.mu.Unlock()
		return nil
	}
	if p.done == nil {
		p.done = make(chan struct{})
	}
	done := p.done
	p.mu.Unlock()
	return latch.Await(ctx, done)
}

// mustBeMade panics unless NewPool has made p.
func (p *Pool) mustBeMade() {
	if p.start == nil {
		panic("executor: a Pool that was not made by NewPool")
	}
}

// mustBeAtHomeLocked panics, and releases the lock, inside a bubble if p was made outside:
// its watchdog would be set by the bubble's time, and nobody outside may wake who waits.
// It reads the time, so it is for where that is needed anyway. It ends the process if p was
// made in a bubble in which the caller is not: a callback would run in either of them, and
// nobody there waits for it.
func (p *Pool) mustBeAtHomeLocked() {
	p.home.Enter()
	if p.isElsewhere() {
		p.mu.Unlock()
		panic("executor: a Pool that was made outside a testing/synctest bubble is used inside one:" +
			" call NewPool inside the bubble")
	}
}

func (p *Pool) isElsewhere() bool { return !p.home.Any() && bubble.Inside() }

// finishLocked is called where any part of its condition may have come true.
func (p *Pool) finishLocked() {
	if p.finished || p.workers > 0 || p.callers > 0 || p.sharing > 0 || p.queue.len() > 0 {
		return
	}
	if p.home.Any() {
		p.restLocked() // when the bubble is over, nobody may stop its timer
	}
	if p.closed {
		p.finished = true
		p.restLocked()
		p.queue, p.shares = queue{}, shares{}
		if p.done != nil {
			close(p.done)
		}
	}
}

// Stats returns the counts, all of the same moment but for Panicked, which
// may be ahead.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	queued := p.queue.len() + p.shares.left()
	running := p.workers - p.starting + p.callers + p.sharing
	return Stats{
		Submitted:   p.submitted,
		Run:         p.submitted - uint64(queued+running),
		Panicked:    uint64(p.panicked.Load()),
		Rejected:    p.rejected,
		CallerRan:   p.callerRan,
		Queued:      queued,
		Running:     running,
		Workers:     p.workers + p.sharing,
		PeakWorkers: p.peak,
	}
}
