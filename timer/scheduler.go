package timer

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/bucket"
	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/delayqueue"
	"github.com/tickless/tickless/internal/bubble"
	"github.com/tickless/tickless/internal/closed"
)

// A Scheduler keeps timers and fires them. Make one with [New], and end it with
// [Scheduler.Close] or [Scheduler.Shutdown]. Any goroutine may call its methods, and so
// may callbacks.
//
// Code in a testing/synctest bubble needs a Scheduler that was made in the same bubble.
// On a Scheduler made outside, Close, Shutdown and the methods that start or move timers
// panic. Stopping a timer works everywhere.
//
// Outside the bubble, code must not start or move timers of a Scheduler made inside, and
// must not close it. Timers might never fire, or the process might end.
type Scheduler struct {
	// Fixed by New.

	epoch           time.Time
	clock           clock.Clock
	usesSystemClock bool // clock is clock.System()
	usesRealTime    bool // usesSystemClock, and not made in a testing/synctest bubble
	config          config
	limit           *pendingLimit // nil: none
	isDefault       bool          // the default Scheduler, which cannot be closed
	// queue holds all buckets that have timers, of all shards, sorted by expiration.
	queue *delayqueue.Queue[queuedBucket]

	// closed is set before the first shard is closed. So after one start was refused, all
	// later starts are refused.
	closed    atomic.Bool
	closeOnce sync.Once
	// handBackDone is closed when Close has taken out all pending timers.
	handBackDone chan struct{}

	shards  shardSet
	trimmer trimmer

	poller     poller
	dispatcher dispatcher

	// leftover holds the timers that were pending at Close, until TakeLeftover is called.
	leftover struct {
		sync.Mutex
		shards []shardLeftover
	}
}

// # Locks, in the order in which they are taken
//
//	poller.mu      the time that the alarm is set for, and whether the poller is awake
//	  trimmer.mu   held while the trimmer locks shards, one by one
//	    shard.mu   everything about the timers of a shard: its wheel, and the fields
//	               of its Timers and Tickers
//	      Timer.mu   of a Timer that was reset: see entry.go
//	      locks of the delay queue, dispatcher, the executor and the clock
//
// While a lock is held, only locks below it may be taken. A goroutine never holds the
// locks of two shards. No user code runs under any of these locks.
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
// Stop, the poller and Close each take the timer's entry out of the wheel, under the
// shard's lock. Only the first of them finds the entry. For a Timer that was reset,
// Timer.mu decides instead: see entry.go.

// All Schedulers on the system's clock count time from processEpoch. So their ticks begin
// together, and timers with slack fire at the same moments.
var processEpoch = time.Now()

// queuedBucket is an element of the delay queue.
type queuedBucket struct {
	sh         *shard
	bucket     bucket.Bucket
	expiration int64
}

// New returns a Scheduler with the given options.
func New(opts ...Option) *Scheduler {
	s := newScheduler(opts)
	s.register()
	return s
}

// newScheduler makes a Scheduler. The caller must call register, so that Schedulers
// returns it.
func newScheduler(opts []Option) *Scheduler {
	c := newConfig(opts)
	s := &Scheduler{clock: c.clock, usesSystemClock: c.clock == nil, config: c, handBackDone: make(chan struct{})}
	if s.usesSystemClock {
		s.clock = clock.System()
	}
	s.epoch = s.clock.Now()
	if s.usesSystemClock {
		if s.usesRealTime = bubble.HasMonotonic(s.epoch); s.usesRealTime {
			s.epoch = processEpoch
		}
	}
	s.queue = delayqueue.New[queuedBucket](delayqueue.WithClock(s.clock), delayqueue.WithEpoch(s.epoch))
	s.shards.init(s)
	s.trimmer.s = s
	if c.maxPending > 0 {
		s.limit = &pendingLimit{max: int64(c.maxPending)}
	}
	s.dispatcher.init(&c)
	s.poller.init(s)
	return s
}

var (
	// ErrClosed is returned when a timer is started on a closed Scheduler. errors.Is(err,
	// ErrClosed) is also true for the ErrClosed of packages executor, purgatory and idle.
	ErrClosed = closed.TimerErrClosed
	// ErrTooManyPending is returned when a timer would exceed the limit of
	// [WithMaxPending].
	ErrTooManyPending = errors.New("timer: too many pending timers")
)

// Start runs f once, after d from now, on the Scheduler's executor. The delay is rounded
// up to a tick. If d is zero or less, f is due immediately, but never runs inside Start.
//
// If Start returns an error, [ErrClosed] or [ErrTooManyPending], f never runs. Start
// panics if f is nil. It is O(1) and allocates nothing.
func (s *Scheduler) Start(d time.Duration, f func()) (Handle, error) {
	return s.start(d, s.config.slack.forDelay(d), nonNilFuncPayload(f), tagFunc)
}

// StartWithin is like Start, with the given slack instead of the Scheduler's: see
// [WithSlack]. If slack is zero or less, the timer has none.
func (s *Scheduler) StartWithin(d, slack time.Duration, f func()) (Handle, error) {
	return s.start(d, slack, nonNilFuncPayload(f), tagFunc)
}

// nonNilFuncPayload returns f as a payload. It panics if f is nil.
func nonNilFuncPayload(f func()) payload {
	if f == nil {
		panic("timer: Start: the func must not be nil")
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
		sh.counts.rejected++
	}
	sh.unlock()
	if err != nil {
		return Handle{}, err
	}
	return Handle{sh, id}, nil
}

// Len returns the number of pending timers. The result is approximate while other
// goroutines start and stop timers. O(shards).
func (s *Scheduler) Len() int {
	s.mustBeFromNew()
	n := 0
	for sh := range s.shards.existingShards() {
		sh.mu.Lock()
		sh.removeStoppedTimersLocked()
		n += sh.wheel.Len()
		sh.unlock()
	}
	return n
}

// Stats returns the Scheduler's counts. O(shards).
func (s *Scheduler) Stats() Stats {
	s.mustBeFromNew()
	var st Stats
	for sh := range s.shards.existingShards() {
		sh.mu.Lock()
		sh.removeStoppedTimersLocked()
		st.addCounts(&sh.counts)
		st.Started += sh.stoppedTimers.restarts()
		st.Stopped += sh.stoppedTimers.restarts()
		st.Pending += sh.wheel.Len()
		st.Cascaded += sh.wheel.Cascaded()
		sh.unlock()
	}
	s.poller.fillStats(&st)
	s.dispatcher.fillStats(&st)
	return st
}

// Now returns the time on the Scheduler's clock.
func (s *Scheduler) Now() time.Time {
	s.mustBeFromNew()
	return s.clock.Now()
}

// Wall returns the time of day on the Scheduler's clock, without a monotonic reading.
func (s *Scheduler) Wall() time.Time {
	s.mustBeFromNew()
	if c, ok := s.clock.(clock.Wall); ok {
		return c.Wall()
	}
	return s.clock.Now().Round(0)
}

// now returns the clock's time, in nanoseconds since the epoch. It is never negative.
func (s *Scheduler) now() int64 {
	if !s.usesRealTime {
		s.mustBeFromNew()
		return max(0, int64(s.clock.Now().Sub(s.epoch)))
	}
	now := int64(time.Since(s.epoch))
	if now < 0 { // a bubble's time begins in the year 2000
		s.mustNotBeInForeignBubble()
	}
	return now
}

// mustNotBeInForeignBubble panics inside a testing/synctest bubble if the Scheduler was
// made outside. There its timers would never fire.
func (s *Scheduler) mustNotBeInForeignBubble() {
	if s.inForeignBubble() {
		panic("timer: a Scheduler made outside a testing/synctest bubble must not be used inside one:" +
			" make it, or a timer of the package's functions, inside the bubble")
	}
}

// inForeignBubble reports whether the caller is inside a bubble and s was made outside.
func (s *Scheduler) inForeignBubble() bool {
	return s.usesRealTime && bubble.Inside()
}

// mustBeFromNew panics if s was not made by New.
func (s *Scheduler) mustBeFromNew() {
	if s.clock == nil {
		panic("timer: a Scheduler that was not made by New")
	}
}

// moment returns the clock's time, both in nanoseconds and as a time.Time.
func (s *Scheduler) moment() moment {
	t := s.clock.Now()
	return moment{nanos: max(0, int64(t.Sub(s.epoch))), time: t}
}

// timeAt converts nanoseconds since the epoch into a time.Time.
func (s *Scheduler) timeAt(n int64) time.Time { return s.epoch.Add(time.Duration(n)) }

// A pendingLimit bounds how many timers with tagLimited may be pending.
type pendingLimit struct {
	max     int64
	pending atomic.Int64
}

// acquire counts one more pending timer. It reports false, and counts nothing, if the
// limit is reached.
func (l *pendingLimit) acquire() bool {
	if l.pending.Add(1) <= l.max {
		return true
	}
	l.pending.Add(-1)
	return false
}

// release counts n timers as no longer pending.
func (l *pendingLimit) release(n int) { l.pending.Add(-int64(n)) }
