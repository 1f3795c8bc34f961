package timer

import (
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/tickless/tickless/delayqueue"
	"github.com/tickless/tickless/timingwheel"
)

const (
	// batchSize limits how many timers fire or move down a level while the expirer holds a
	// shard's lock. Starts and stops wait for this lock.
	batchSize = 256
	// submitSize is how many callbacks are collected before they are submitted. If there
	// are fewer, the poller falls asleep, and its goroutine runs them.
	submitSize = 4 * batchSize
	// The expirer works for at most maxWorkTime, and then pauses for breakTime. After 10
	// ms, Go's scheduler would preempt its goroutine and put it behind all others.
	maxWorkTime = 8 * time.Millisecond
	breakTime   = 100 * time.Microsecond
	// While callbacks wait, at most movesBeforeCallbacks timers move down a level: that
	// takes 0.1 ms.
	movesBeforeCallbacks = 4 * batchSize
	// Expiring a bucket takes about as long as firing bucketCost timers. The expirer takes
	// up to maxBuckets from the queue at a time. At 10,000 timers a second, about ten are
	// due.
	bucketCost = 16
	maxBuckets = 32
)

// expirer does the work that is due: it takes buckets out of the queue, fires their due
// timers, and moves the others down a level. The poller decides when. Only the goroutine
// on which the poller is awake uses the expirer, or one that holds poller.mu while the
// poller is asleep.
type expirer struct {
	s *Scheduler
	// shardsToFire lists the shards that have more expired timers to fire. shardsToMove
	// lists the shards whose remaining expired timers only move down a level.
	shardsToFire, shardsToMove shardList
	// expiredBuf has space for a batch while the poller is awake, and is nil otherwise.
	expiredBuf *expiredBatch
	// batch holds the callbacks that are not submitted yet.
	batch callbackBatch
	// nextBucketAt is the expiration of the queue's first bucket, as of the last poll of
	// the queue. For buckets that are offered later, a start calls poller.wake.
	nextBucketAt int64
	// shouldTrim is true if a shard may have lost its last timer: see poller.trySleep.
	shouldTrim bool
}

type expiredBatch [batchSize]timingwheel.Expired[payload]

var expiredBatchPool = sync.Pool{New: func() any { return new(expiredBatch) }}

// # The order of work
//
// A bucket of an upper level may hold a million timers that only move down a level. Due
// timers do not wait for these moves. The expirer takes, in this order:
//
//  1. the due buckets of the queue, some at a time, without their timers;
//  2. a batch from a shard that has such buckets, or more timers to fire;
//  3. a batch from a shard that has more timers to move. A timer that is due by now
//     fires, perhaps after timers of later ticks.
//
// If only the poller submits callbacks, it finishes each bucket before it takes the next.
// Then timers fire in the order of ticks.

// work does the work that is due at the given time, and reports whether there was any. If
// work is left, pause is how long the poller must sleep before it goes on. Otherwise pause
// is negative.
func (e *expirer) work(at moment) (worked bool, pause time.Duration) {
	inTickOrder := e.s.dispatcher.onlyPollerSubmits
	if inTickOrder {
		e.submitBatch() // callbacks that an interrupted run has not submitted
	}
	e.nextBucketAt = 0
	startNanos := at.nanos
	movesLeft := movesBeforeCallbacks
	// The clock is read again when as much was done as firing batchSize timers takes.
	for doneSinceReading := 0; ; {
		if inTickOrder || doneSinceReading >= batchSize {
			at, doneSinceReading = e.s.moment(), 0
		}
		if !inTickOrder && time.Duration(at.nanos-startNanos) > maxWorkTime {
			return worked, breakTime
		}
		if inTickOrder {
			e.batch.callbacks = e.s.dispatcher.takeReadyCallbacks(e.batch.callbacks)
			worked = worked || len(e.batch.callbacks) > 0
			e.submitBatch()
		}
		doneSinceReading += bucketCost * e.expireDueBuckets(at.nanos, inTickOrder)
		sh := e.shardsToFire.pop()
		if sh == nil {
			if len(e.batch.callbacks) > 0 && len(e.shardsToMove) > 0 {
				if movesLeft == 0 {
					return worked, 0
				}
				movesLeft -= batchSize
			}
			if sh = e.shardsToMove.pop(); sh == nil {
				return worked, -1
			}
		}
		numDrained := e.drainShard(sh, at)
		worked = worked || numDrained > 0
		doneSinceReading += numDrained
	}
}

// expireDueBuckets takes due buckets out of the queue and expires them, so that drainShard
// finds their timers. It returns how many. If inTickOrder is true, it takes one bucket, and
// only if all timers of earlier buckets have left their wheels or moved down.
func (e *expirer) expireDueBuckets(now int64, inTickOrder bool) (n int) {
	if now < e.nextBucketAt { // the poller hears of buckets that are offered meanwhile
		return 0
	}
	var buf [maxBuckets]queuedBucket
	due := buf[:]
	if inTickOrder {
		if len(e.shardsToFire)+len(e.shardsToMove) > 0 {
			return 0
		}
		due = buf[:1]
	}
	n, e.nextBucketAt = e.s.queue.PollAt(now, due)
	for due = due[:n]; len(due) > 0; {
		sh := due[0].sh
		sh.mu.Lock()
		for ; len(due) > 0 && due[0].sh == sh; due = due[1:] {
			sh.wheel.Expire(due[0].bucket, due[0].expiration)
		}
		sh.mu.Unlock()
		e.shardsToFire.push(sh)
	}
	return n
}

// drainShard fires or moves down a batch of a shard's expired timers, and returns how
// many.
func (e *expirer) drainShard(sh *shard, at moment) (numDrained int) {
	if e.expiredBuf == nil {
		e.expiredBuf = expiredBatchPool.Get().(*expiredBatch)
	}
	sh.mu.Lock()
	cascadesBefore := sh.wheel.Cascaded() + sh.counts.cascaded
	n, _ := sh.wheel.Drain(e.expiredBuf[:])
	firstNewIndex := len(e.batch.callbacks)
	numDrained = e.fireExpiredLocked(sh, e.expiredBuf[:n], at) + int(sh.wheel.Cascaded()+sh.counts.cascaded-cascadesBefore)
	level, hasMore := sh.wheel.Draining()
	e.shouldTrim = e.shouldTrim || sh.wheel.Len() == 0
	e.nextBucketAt = min(e.nextBucketAt, sh.wakeAt)
	sh.wakeAt = never
	sh.mu.Unlock()
	switch {
	case hasMore && level == 0:
		e.shardsToFire.push(sh)
	case hasMore:
		e.shardsToMove.push(sh)
	}
	prefetchClosures(e.batch.callbacks[firstNewIndex:])
	if len(e.batch.callbacks) >= submitSize || e.s.dispatcher.onlyPollerSubmits {
		e.submitBatch()
	}
	return numDrained
}

// fireExpiredLocked fires timers that have left the wheel, adds their callbacks to
// e.batch, and returns how many have fired.
func (e *expirer) fireExpiredLocked(sh *shard, expired []timingwheel.Expired[payload], at moment) int {
	if sh.stoppedTimers != nil {
		expired = sh.expireTimersLocked(expired)
	}
	for i := range expired {
		x := &expired[i]
		sh.counts.countFired(time.Duration(at.nanos - x.Due))
		if f, ok := sh.firePayloadLocked(x.Value, x.Tag, at); ok {
			e.batch.callbacks = append(e.batch.callbacks, f)
		}
	}
	clear(expired)
	return len(expired)
}

func (e *expirer) submitBatch() {
	if len(e.batch.callbacks) == 0 {
		return
	}
	if d := &e.s.dispatcher; d.onlyPollerSubmits {
		e.batch.submitAll(d.submit)
	} else {
		d.submitBatch(&e.batch)
	}
}

// prefetchClosures reads the closures of callbacks into the processor's cache. Reading
// many closures together is faster than reading each before its call. The result keeps
// the compiler from removing the reads.
//
//go:noinline
func prefetchClosures(fs []func()) (sum uintptr) {
	for _, f := range fs {
		if f != nil {
			sum += **(**uintptr)(unsafe.Pointer(&f))
		}
	}
	return sum
}

// discardEmptyBuckets removes empty buckets from the front of the queue, and returns when
// the first remaining bucket is due.
func (e *expirer) discardEmptyBuckets() (nextBucketAt int64) {
	for {
		b, ticket, at, ok := e.s.queue.Head()
		if !ok {
			return never
		}
		if !e.discardBucketIfEmpty(b, ticket) {
			return at
		}
	}
}

// discardBucketIfEmpty removes a bucket from the queue if it has no timers, and reports
// whether it did.
func (e *expirer) discardBucketIfEmpty(b queuedBucket, ticket delayqueue.Ticket) bool {
	b.sh.mu.Lock()
	defer b.sh.mu.Unlock()
	if !b.sh.wheel.Discard(b.bucket) {
		return false
	}
	// Remove comes before unlocking: afterwards a start may offer the bucket again.
	e.s.queue.Remove(ticket)
	e.shouldTrim = e.shouldTrim || b.sh.wheel.Len() == 0
	return true
}

// freeBuffer gives back expiredBuf, before the poller falls asleep.
func (e *expirer) freeBuffer() {
	if e.expiredBuf != nil {
		expiredBatchPool.Put(e.expiredBuf)
		e.expiredBuf = nil
	}
}

// A shardList is a queue of shards. No shard is in it twice.
type shardList []*shard

func (l *shardList) push(sh *shard) {
	if !slices.Contains(*l, sh) {
		*l = append(*l, sh)
	}
}

// pop removes the shard that has waited longest, and returns it. It returns nil if the
// list is empty.
func (l *shardList) pop() *shard {
	if len(*l) == 0 {
		return nil
	}
	sh := (*l)[0]
	*l = slices.Delete(*l, 0, 1)
	return sh
}
