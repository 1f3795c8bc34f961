package timer

import (
	"errors"
	"sync"
	"time"

	"github.com/tickless/tickless/bucket"
	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/delayqueue"
	"github.com/tickless/tickless/internal/bubble"
	"github.com/tickless/tickless/internal/closed"
	"go.uber.org/atomic"
)

// A Scheduler keeps timers and fires them. Make one with [New], and end it with
// [Scheduler.Close] or [Scheduler.Shutdown]. Any goroutine may call its methods, also
// from inside callbacks. It holds no goroutine while nothing is pending.
//
// Code in a testing/synctest bubble needs a Scheduler that was made there. With one that was
// made outside, whatever starts or moves a timer panics there, and so do Close and Shutdown;
// stopping a timer works. Outside its bubble, a Scheduler that was made in one can be read,
// and its timers stopped. To start or move a timer there, or to close the Scheduler, is a
// misuse: the process ends, as with the timers of package time, or timers never fire.
type Scheduler struct {
	// Fixed by New.

	epoch  time.Time
	clock  clock.Clock
	system bool // the clock is the system's: time.Since(epoch) reads it best
	real   bool // and New was not called in a testing/synctest bubble
	config config
	limit  *limit // nil: none
	shared bool   // it is the default one, which nobody may close
	// queue holds the buckets of all shards that have timers in them, and only those, by
	// expiration.
	queue *delayqueue.Queue[dueBucket]

	// closed is set once, before the shards are closed: no start is accepted after
	// another was refused for it.
	closed   atomic.Bool
	shutting sync.Once
	// done is closed once Close has taken out what was pending.
	done chan struct{}

	shards shards
	trim   trimmer

	poller   poller
	dispatch dispatch

	// leftover is what was pending at Close, until TakeLeftover takes it.
	leftover struct {
		sync.Mutex
		shards []shardLeftover
	}
}

// # Locks, and the order in which they are taken
//
//	poller.mu      when the alarm is set for, whether the poller is awake
//	  trimmer.mu   held while shards are looked at, one by one
//	    shard.mu   everything about the timers of a shard: its wheel, and the fields
//	               of the Timers and Tickers whose home it is
//	      Timer.mu   of one that was reset: see entry.go
//	      those of the delay queue, dispatch, the executor and the clock
//
// A lock may be taken while those above it are held, never the other way round. Two
// shards are never locked at once. No user code runs under any of them.
//
// # A timer's life
//
//	        start                  due, by the poller          executor
//	(none) ───────▶ pending ───────────────────────────▶ fired ─────────▶ run
//	                 │   ▲ │                              ▲
//	            stop │   └─┘ reset        start, d <= 0   │
//	                 ▼                    reset, d <= 0 ──┘
//	       stopped, or handed back by Close
//
// Every arrow out of pending is one critical section of the timer's shard, which
// takes its entry out of the wheel. So exactly one of stop, fire and hand back
// happens, whoever races; a bucket's expiry alone changes nothing for its
// timers, which can be stopped and reset until the drain has reached them. For a Timer
// that was reset it is a critical section of its own lock: see entry.go.

// processEpoch is the epoch of all Schedulers on the system's clock: their ticks, and
// so the moments to which slack rounds, are the same.
var processEpoch = time.Now()

// dueBucket is what waits in the delay queue.
type dueBucket struct {
	sh         *shard
	b          bucket.Bucket
	expiration int64
}

// New makes a Scheduler.
func New(opts ...Option) *Scheduler {
	s := newScheduler(opts)
	s.register()
	return s
}

// newScheduler makes a Scheduler that nobody knows yet.
func newScheduler(opts []Option) *Scheduler {
	c := newConfig(opts)
	s := &Scheduler{clock: c.clock, system: c.clock == nil, config: c, done: make(chan struct{})}
	if s.system {
		s.clock = clock.System()
	}
	s.epoch = s.clock.Now()
	if s.system {
		if s.real = bubble.Monotonic(s.epoch); s.real {
			s.epoch = processEpoch
		}
	}
	s.queue = delayqueue.New[dueBucket](delayqueue.WithClock(s.clock), delayqueue.WithEpoch(s.epoch))
	s.shards.init(s)
	s.trim.s = s
	if c.maxPending > 0 {
		s.limit = &limit{most: int64(c.maxPending)}
	}
	s.dispatch.init(&c)
	s.poller.init(s)
	return s
}

var (
	// ErrClosed is returned for a timer that was to be started on a Scheduler
	// after Close or Shutdown. It is also the root of the errors of that name in the
	// packages executor, purgatory and idle: errors.Is reports that each of them is
	// this one.
	ErrClosed = closed.Root
	// ErrTooManyPending is returned for a timer that would be one more than
	// [WithMaxPending] allows.
	ErrTooManyPending = errors.New("timer: too many pending timers")
)

// Start runs f once, after d from now, on the Scheduler's executor. A d of zero or
// less is due at once; f never runs inside Start. Delays round up to a tick: the
// timer never fires early. The error is [ErrClosed] or [ErrTooManyPending], and then
// f never runs; a timer that is due at once needs no room among the pending ones.
// Start panics if f is nil. O(1), and it allocates nothing.
func (s *Scheduler) Start(d time.Duration, f func()) (Handle, error) {
	return s.start(d, s.config.slack.of(d), mustBeFunc(f), tagFunc)
}

// StartWithin is Start for a timer that may fire as late as slack after d: see
// [WithSlack]. A slack of zero or less is none, whatever the Scheduler's is.
func (s *Scheduler) StartWithin(d, slack time.Duration, f func()) (Handle, error) {
	return s.start(d, slack, mustBeFunc(f), tagFunc)
}

// mustBeFunc returns f as a payload.
func mustBeFunc(f func()) payload {
	if f == nil {
		panic("timer: Start with a nil func")
	}
	return funcPayload(f)
}

func (s *Scheduler) start(d, slack time.Duration, p payload, tag uint8) (Handle, error) {
	if s.limit != nil && d > 0 && tag == tagFunc {
		tag = tagLimited
	}
	now := s.now()
	sh := s.lockShard()
	id, err := sh.startLocked(now, d, slack, p, tag)
	if err != nil {
		sh.n.rejected++
	}
	sh.unlock()
	if err != nil {
		return Handle{}, err
	}
	return Handle{sh, id}, nil
}

// Len returns the number of pending timers. It counts one shard after another, so while
// other goroutines start and stop timers it is near the number that there is. O(shards).
func (s *Scheduler) Len() int {
	s.mustBeMade()
	n := 0
	for sh := range s.shards.made() {
		sh.mu.Lock()
		sh.settleLocked()
		n += sh.wheel.Len()
		sh.unlock()
	}
	return n
}

// Stats returns the Scheduler's counts. O(shards).
func (s *Scheduler) Stats() Stats {
	s.mustBeMade()
	var st Stats
	for sh := range s.shards.made() {
		sh.mu.Lock()
		sh.settleLocked()
		st.add(&sh.n)
		st.Started += sh.stopped.restarts()
		st.Stopped += sh.stopped.restarts()
		st.Pending += sh.wheel.Len()
		st.Cascaded += sh.wheel.Cascaded()
		sh.unlock()
	}
	s.poller.stats(&st)
	s.dispatch.stats(&st)
	return st
}

// Now returns the time on the Scheduler's clock.
func (s *Scheduler) Now() time.Time {
	s.mustBeMade()
	return s.clock.Now()
}

// Wall returns the time of day on the Scheduler's clock. It has no monotonic reading,
// which would not follow when the clock is set.
func (s *Scheduler) Wall() time.Time {
	s.mustBeMade()
	if c, ok := s.clock.(clock.Wall); ok {
		return c.Wall()
	}
	return s.clock.Now().Round(0)
}

// now reads the clock: nanoseconds since the epoch, never negative.
func (s *Scheduler) now() int64 {
	if !s.real {
		s.mustBeMade()
		return max(0, int64(s.clock.Now().Sub(s.epoch)))
	}
	now := int64(time.Since(s.epoch))
	if now < 0 {
		s.mustBeAtHome()
	}
	return now
}

// nowOrAway is now, but reports away where now would panic and the Scheduler is the
// default one, whose Timers and Tickers may be anywhere.
func (s *Scheduler) nowOrAway() (now int64, away bool) {
	if s.shared {
		if now = int64(time.Since(s.epoch)); now < 0 {
			return 0, s.isElsewhere()
		}
		return now, false
	}
	return s.now(), false
}

// mustBeAtHome panics inside a testing/synctest bubble if the Scheduler was made
// outside, and so sleeps by another clock: what is started in the bubble would
// never fire. A bubble's clock begins in the year 2000 and has no monotonic
// reading, so that the time since such a Scheduler's epoch is negative there; by
// the system's clock it never is.
func (s *Scheduler) mustBeAtHome() {
	if s.isElsewhere() {
		panic("timer: a Scheduler that was made outside a testing/synctest bubble is used inside one:" +
			" call timer.New inside the bubble")
	}
}

// isElsewhere reports whether the caller is inside a bubble and s is not.
func (s *Scheduler) isElsewhere() bool {
	return s.real && bubble.Inside()
}

// mustBeMade panics unless New has made s.
func (s *Scheduler) mustBeMade() {
	if s.clock == nil {
		panic("timer: a Scheduler that was not made by New")
	}
}

// moment reads the clock for those who need the time itself too.
func (s *Scheduler) moment() moment {
	t := s.clock.Now()
	return moment{now: max(0, int64(t.Sub(s.epoch))), time: t}
}

// at turns a moment of now's into a time.
func (s *Scheduler) at(n int64) time.Time { return s.epoch.Add(time.Duration(n)) }

// A limit bounds how many timers of Start may be pending. Each of them has tagLimited.
type limit struct {
	most int64
	n    atomic.Int64
}

// take makes one more of them pending, or reports false.
func (l *limit) take() bool {
	if l.n.Inc() <= l.most {
		return true
	}
	l.n.Dec()
	return false
}

// give is called when n of them have left.
func (l *limit) give(n int) { l.n.Sub(int64(n)) }
