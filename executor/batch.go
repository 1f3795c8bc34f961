package executor

import "go.uber.org/atomic"

// batchSize is the largest number of callbacks in a batch. A worker locks the pool once
// for each batch.
const batchSize = 256

// In a batch of at most fewCallbacks, a worker does not yield. If thousands of goroutines
// compute, each yield takes seconds.
const fewCallbacks = 8

// A batch is a group of callbacks that workers take one at a time. So a callback that
// blocks delays no other callback of its batch. A batch has four states:
//
//	open    no callback has been taken; push appends callbacks under the pool's lock
//	shared  workers that hold the batch take callbacks without the lock
//	spent   all callbacks have been taken; the batch leaves the queue under the lock
//	spare   no worker holds the batch; addBatch reuses it under the lock
//
// A worker takes the first callback of a batch under the lock. So a batch is open while
// next is 0.
type batch struct {
	next      atomic.Int32 // index of the callback to take next; may exceed n
	n         int32        // the number of callbacks in funcs
	holders   int32        // number of workers that hold the batch; guarded by the pool's lock
	queued    bool         // the batch is in the queue's list; guarded by the pool's lock
	nextBatch *batch
	funcs     [batchSize]func()
}

// take takes the next callback, and drops the batch's reference to it. The caller must
// hold the batch or the pool's lock.
func (b *batch) take() (f func(), ok bool) {
	i := b.next.Inc() - 1
	if i >= b.n {
		return nil, false
	}
	f = b.funcs[i]
	b.funcs[i] = nil
	return f, true
}

// waitingCount returns how many callbacks wait in the batch.
func (b *batch) waitingCount() int { return int(b.n - min(b.next.Load(), b.n)) }

// A queue has a list of batches, and spare batches for reuse. The pool's lock guards it,
// but taking from a shared batch needs no lock.
type queue struct {
	head, tail *batch

	spare      *batch // the first of the spare batches
	spareCount int
}

// maxSpares is the largest number of batches that are kept for reuse: 150 kB. So memory
// shrinks after a peak.
const maxSpares = 64

// len counts the callbacks that wait, until it has counted limit or more. While the
// caller holds the pool's lock, the number never rises.
func (q *queue) len(limit int) (n int) {
	for b := q.head; b != nil && n < limit; b = b.nextBatch {
		n += b.waitingCount()
	}
	return n
}

func (q *queue) push(fs []func()) {
	for len(fs) > 0 {
		b := q.openBatch()
		k := copy(b.funcs[b.n:], fs)
		fs = fs[k:]
		b.n += int32(k)
	}
}

// openBatch returns the last batch if it can take one more callback, or else a new batch.
func (q *queue) openBatch() *batch {
	if b := q.tail; b != nil && b.n < batchSize && b.next.Load() == 0 {
		return b
	}
	return q.addBatch()
}

// addBatch appends an empty batch.
func (q *queue) addBatch() *batch {
	b := q.spare
	if b == nil {
		b = new(batch)
	} else {
		q.spare, b.nextBatch = b.nextBatch, nil
		q.spareCount--
	}
	if q.tail == nil {
		q.head = b
	} else {
		q.tail.nextBatch = b
	}
	q.tail = b
	b.queued = true
	return b
}

// take returns the callback that has waited longest. b is the callback's batch, or nil if
// no more callbacks of the batch wait. The caller holds b and must release it.
func (q *queue) take() (b *batch, f func(), ok bool) {
	for q.head != nil {
		b := q.head
		f, ok := b.take()
		if ok && b.waitingCount() > 0 {
			b.holders++
			return b, f, true
		}
		q.dropFirst()
		if ok {
			return nil, f, true
		}
	}
	return nil, nil, false
}

// release ends the caller's hold on b. If b is the first batch and all of its callbacks
// have been taken, b leaves the queue. If b has left the queue and no worker holds it, b
// becomes a spare.
func (q *queue) release(b *batch) {
	b.holders--
	if b == q.head && b.waitingCount() == 0 {
		q.dropFirst()
	} else if !b.queued && b.holders == 0 {
		q.recycle(b)
	}
}

// dropFirst removes the first batch, which must be spent, from the queue.
func (q *queue) dropFirst() {
	b := q.head
	q.head, b.nextBatch = b.nextBatch, nil
	if q.head == nil {
		q.tail = nil
	}
	b.queued = false
	if b.holders == 0 {
		q.recycle(b)
	}
}

func (q *queue) recycle(b *batch) {
	if q.spareCount == maxSpares {
		return
	}
	b.next.Store(0)
	b.n = 0
	q.spare, b.nextBatch = b, q.spare
	q.spareCount++
}
