package executor

import "go.uber.org/atomic"

// batchSize is how many callbacks share one counter. A worker takes the
// pool's lock once for that many, which makes the lock's share of a callback
// less than a nanosecond.
const batchSize = 256

// A batch is a run of callbacks that workers take one at a time, so that a
// callback which blocks holds up itself and nothing of its batch.
//
//	open    nobody has taken from it; push appends         under the pool's lock
//	shared  n is final; its holders take by the counter    without the lock
//	spent   the counter has passed n; it leaves the queue  under the pool's lock
//	spare   spent and held by nobody; ready to be opened   under the pool's lock
//
// The first callback is always taken under the lock, so the way from open to
// shared is made there, and next == 0 says under the lock that it is open.
// A spent batch becomes a spare only when its last holder has come back: a
// worker whose callback blocked for an hour finds the counter as it was, not
// that of a new batch in the same memory.
type batch struct {
	next    atomic.Int32 // the callback to take next; runs past n by one for each holder at most
	n       int32        // callbacks in funcs
	holders int32        // workers that may take without the lock; guarded by it
	queued  bool         // it is in the queue's list; guarded by the lock
	link    *batch
	funcs   [batchSize]func()
}

// take claims the next callback of a batch that the caller holds and clears
// its slot: once it has run nothing here keeps it reachable.
func (b *batch) take() (f func(), ok bool) {
	i := b.next.Inc() - 1
	if i >= b.n {
		return nil, false
	}
	f = b.funcs[i]
	b.funcs[i] = nil
	return f, true
}

// waiting returns how many callbacks wait in the batch.
func (b *batch) waiting() int { return int(b.n - min(b.next.Load(), b.n)) }

// A queue is a list of batches with the spent ones kept for reuse. The pool's
// lock guards all of it except the taking from shared batches.
type queue struct {
	head, tail *batch

	spare  *batch
	spares int
}

// maxSpares bounds the batches kept for reuse (150 kB), so that memory falls
// after a peak.
const maxSpares = 64

// len returns how many callbacks wait, or at least most if they are more. Workers that
// hold a batch may make it less at any moment; only the lock's holder can make it more.
func (q *queue) len(most int) (n int) {
	for b := q.head; b != nil && n < most; b = b.link {
		n += b.waiting()
	}
	return n
}

func (q *queue) push(fs []func()) {
	for len(fs) > 0 {
		b := q.open()
		k := copy(b.funcs[b.n:], fs)
		fs = fs[k:]
		b.n += int32(k)
	}
}

// open returns the last batch if it can take one more callback, or a new one.
func (q *queue) open() *batch {
	if b := q.tail; b != nil && b.n < batchSize && b.next.Load() == 0 {
		return b
	}
	return q.add()
}

// add appends an empty batch.
func (q *queue) add() *batch {
	b := q.spare
	if b == nil {
		b = new(batch)
	} else {
		q.spare, b.link = b.link, nil
		q.spares--
	}
	if q.tail == nil {
		q.head = b
	} else {
		q.tail.link = b
	}
	q.tail = b
	b.queued = true
	return b
}

// take returns the callback that has waited longest and the batch that it
// came from, which the caller then holds and must release; a nil batch means
// that there was no more in it.
func (q *queue) take() (b *batch, f func(), ok bool) {
	for q.head != nil {
		b := q.head
		f, ok := b.take()
		if ok && b.waiting() > 0 {
			b.holders++
			return b, f, true
		}
		q.drop()
		if ok {
			return nil, f, true
		}
	}
	return nil, nil, false
}

// release gives back a batch that the caller has held. It is spent, unless a
// callback that panicked made the caller come early; then it stays where it is.
func (q *queue) release(b *batch) {
	b.holders--
	if b == q.head && b.waiting() == 0 {
		q.drop()
	} else if !b.queued && b.holders == 0 {
		q.recycle(b)
	}
}

// drop takes the spent first batch off the queue.
func (q *queue) drop() {
	b := q.head
	q.head, b.link = b.link, nil
	if q.head == nil {
		q.tail = nil
	}
	b.queued = false
	if b.holders == 0 {
		q.recycle(b)
	}
}

func (q *queue) recycle(b *batch) {
	if q.spares == maxSpares {
		return
	}
	b.next.Store(0)
	b.n = 0
	q.spare, b.link = b, q.spare
	q.spares++
}
