package executor

import "go.uber.org/atomic"

// callbacksPerBatch is the largest number of callbacks in a batch. A worker locks the
// pool once for each batch.
const callbacksPerBatch = 256

// In a batch of at most maxWithoutYield callbacks, a worker does not yield. If thousands
// of goroutines compute, each yield takes seconds.
const maxWithoutYield = 8

// A batch is a group of callbacks that workers take one at a time. So a callback that
// blocks delays no other callback of its batch. A batch has four states:
//
//	open    no callback has been taken; pushCallbacks appends under the pool's lock
//	shared  workers that hold the batch take callbacks without the lock
//	spent   all callbacks have been taken; the batch leaves the queue under the lock
//	spare   no worker holds the batch; appendBatch reuses it under the lock
//
// A worker takes the first callback of a batch under the lock. So a batch is open while
// nextIndex is 0.
type batch struct {
	nextIndex   atomic.Int32 // index of the callback to take next; may exceed n
	n           int32        // the number of callbacks in funcs
	holderCount int32        // number of workers that hold the batch; guarded by the pool's lock
	isQueued    bool         // the batch is in the queue's list; guarded by the pool's lock
	nextBatch   *batch
	funcs       [callbacksPerBatch]func()
}

// takeCallback takes the next callback, and drops the batch's reference to it. The caller
// must hold the batch or the pool's lock.
func (b *batch) takeCallback() (f func(), ok bool) {
	i := b.nextIndex.Inc() - 1
	if i >= b.n {
		return nil, false
	}
	f = b.funcs[i]
	b.funcs[i] = nil
	return f, true
}

// waitingCount returns how many callbacks wait in the batch.
func (b *batch) waitingCount() int { return int(b.n - min(b.nextIndex.Load(), b.n)) }

// A batchQueue has a list of batches, and spare batches for reuse. The pool's lock guards
// it, but taking from a shared batch needs no lock.
type batchQueue struct {
	head, tail *batch

	firstSpare *batch // the first of the spare batches
	spareCount int
}

// maxSpareBatches is the largest number of batches that are kept for reuse: 150 kB. So
// memory shrinks after a peak.
const maxSpareBatches = 64

// countWaiting counts the callbacks that wait, until it has counted limit or more. While
// the caller holds the pool's lock, the number never rises.
func (q *batchQueue) countWaiting(limit int) (n int) {
	for b := q.head; b != nil && n < limit; b = b.nextBatch {
		n += b.waitingCount()
	}
	return n
}

func (q *batchQueue) pushCallbacks(fs []func()) {
	for len(fs) > 0 {
		b := q.batchForPush()
		k := copy(b.funcs[b.n:], fs)
		fs = fs[k:]
		b.n += int32(k)
	}
}

// batchForPush returns the last batch if it can take one more callback, or else a new
// batch.
func (q *batchQueue) batchForPush() *batch {
	if b := q.tail; b != nil && b.n < callbacksPerBatch && b.nextIndex.Load() == 0 {
		return b
	}
	return q.appendBatch()
}

// appendBatch appends an empty batch.
func (q *batchQueue) appendBatch() *batch {
	b := q.firstSpare
	if b == nil {
		b = new(batch)
	} else {
		q.firstSpare, b.nextBatch = b.nextBatch, nil
		q.spareCount--
	}
	if q.tail == nil {
		q.head = b
	} else {
		q.tail.nextBatch = b
	}
	q.tail = b
	b.isQueued = true
	return b
}

// takeCallback returns the callback that has waited longest. b is the callback's batch,
// or nil if no more callbacks of the batch wait. The caller holds b and must release it.
func (q *batchQueue) takeCallback() (b *batch, f func(), ok bool) {
	for q.head != nil {
		b := q.head
		f, ok := b.takeCallback()
		if ok && b.waitingCount() > 0 {
			b.holderCount++
			return b, f, true
		}
		q.dropFirstBatch()
		if ok {
			return nil, f, true
		}
	}
	return nil, nil, false
}

// releaseBatch ends the caller's hold on b. If b is the first batch and all of its
// callbacks have been taken, b leaves the queue. If b has left the queue and no worker
// holds it, b becomes a spare.
func (q *batchQueue) releaseBatch(b *batch) {
	b.holderCount--
	if b == q.head && b.waitingCount() == 0 {
		q.dropFirstBatch()
	} else if !b.isQueued && b.holderCount == 0 {
		q.recycleBatch(b)
	}
}

// dropFirstBatch removes the first batch, which must be spent, from the queue.
func (q *batchQueue) dropFirstBatch() {
	b := q.head
	q.head, b.nextBatch = b.nextBatch, nil
	if q.head == nil {
		q.tail = nil
	}
	b.isQueued = false
	if b.holderCount == 0 {
		q.recycleBatch(b)
	}
}

func (q *batchQueue) recycleBatch(b *batch) {
	if q.spareCount == maxSpareBatches {
		return
	}
	b.nextIndex.Store(0)
	b.n = 0
	q.firstSpare, b.nextBatch = b, q.firstSpare
	q.spareCount++
}
