package executor

import "go.uber.org/atomic"

// batchSize is the largest number of callbacks in a batch. A worker locks the pool only
// once for a batch, which costs less than a nanosecond for each callback.
const batchSize = 256

// A worker runs a batch of at most fewCallbacks without yielding to other goroutines.
// Beside thousands of computing goroutines, each yield would delay the next callback by
// seconds.
const fewCallbacks = 8

// A batch is a group of callbacks that workers take one at a time. So a callback that
// blocks delays no other callback of its batch.
//
// A batch goes through four states:
//
//	open    no callback has been taken; push appends       under the pool's lock
//	shared  n is final; workers that hold it take          without the lock
//	spent   all callbacks have been taken; it is dequeued  under the pool's lock
//	spare   no worker holds it; addBatch may reuse it      under the pool's lock
//
// A worker takes the first callback of a batch under the lock. So if next is 0, read
// under the lock, the batch is open.
//
// A worker holds a batch until it calls release. A batch is not reused while a worker
// holds it: that worker may still try to take a callback from it.
type batch struct {
	next      atomic.Int32 // index of the callback to take next; may exceed n
	n         int32        // the number of callbacks in funcs
	holders   int32        // number of workers that hold the batch; guarded by the pool's lock
	queued    bool         // the batch is in the queue's list; guarded by the pool's lock
	nextBatch *batch
	funcs     [batchSize]func()
}

// take takes the next callback of a batch that the caller holds. It also clears the
// callback's element of funcs, so that the batch does not keep the callback reachable.
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

// A queue has a list of batches, and a list of spare batches for reuse. The pool's lock
// guards both lists. Only taking from a shared batch needs no lock.
type queue struct {
	head, tail *batch

	spare      *batch // the first of the spare batches
	spareCount int
}

// maxSpares is the largest number of batches that are kept for reuse: 150 kB. So memory
// shrinks after a peak.
const maxSpares = 64

// len returns how many callbacks wait. It stops counting once it has reached limit. While
// the caller holds the pool's lock, workers may lower the number, but nothing raises it.
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

// take returns the callback that has waited longest. If more callbacks of its batch wait,
// take also returns the batch. The caller then holds the batch and must release it.
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

// release ends the caller's hold on b. If b is the first in the queue and has no
// callbacks left, release removes it. If b has left the queue and no other worker holds
// it, release keeps b for reuse.
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
