package executor

import (
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// The test applies random operations to a queue and to a slice, and compares them.
func TestQueue_AgainstAModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var q batchQueue
	var model []int // the callbacks that wait, in order
	var got int
	callback := func(i int) func() { return func() { got = i } }
	next := 0
	held := map[*batch]int{}
	var holders []*batch
	ran := func(f func()) {
		f()
		require.Equal(t, model[0], got)
		model = model[1:]
	}
	for range 30_000 {
		switch op := r.IntN(100); {
		case op < 10:
			q.pushCallbacks([]func(){callback(next)})
			model = append(model, next)
			next++
		case op == 10:
			// Push few callbacks, so that the queue sometimes becomes empty.
			fs := make([]func(), r.IntN(10))
			if r.IntN(20) == 0 {
				fs = make([]func(), r.IntN(700))
			}
			for i := range fs {
				fs[i] = callback(next)
				model = append(model, next)
				next++
			}
			q.pushCallbacks(fs)
			clear(fs)
		case op < 20 && len(holders) < 8: // a worker takes a callback
			b, f, ok := q.takeCallback()
			require.Equal(t, len(model) > 0, ok)
			if ok {
				ran(f)
			}
			if b != nil {
				require.Less(t, b.nextIndex.Load(), b.n, "a batch without waiting callbacks is not held")
				holders = append(holders, b)
				held[b]++
			}
		case op < 25 && len(holders) > 0: // a worker releases its batch, early if a callback panicked
			i := r.IntN(len(holders))
			b := holders[i]
			holders = append(holders[:i], holders[i+1:]...)
			if held[b]--; held[b] == 0 {
				delete(held, b)
			}
			q.releaseBatch(b)
		case len(holders) > 0:
			if f, ok := holders[r.IntN(len(holders))].takeCallback(); ok {
				ran(f)
			}
		}

		require.Equal(t, len(model), q.countWaiting(noLimit))
		for b, n := range held {
			require.EqualValues(t, n, b.holderCount)
		}
		spares := 0
		for b := q.firstSpare; b != nil; b = b.nextBatch {
			spares++
			require.NotContains(t, held, b, "a batch that a worker holds was reused")
			require.EqualValues(t, [2]int32{}, [2]int32{b.nextIndex.Load(), b.n})
			require.False(t, b.isQueued)
			require.Nil(t, b.funcs[r.IntN(callbacksPerBatch)])
		}
		require.Equal(t, spares, q.spareCount)
		require.LessOrEqual(t, spares, maxSpareBatches)
	}
}

// A worker locks the pool only at the beginning and end of a batch. The test holds the
// lock in between, where a second lock would deadlock.
func TestPool_TakesItsLockOnceForABatch(t *testing.T) {
	const size, batches = 256, 3
	p := NewPool(WithWorkers(1), WithMaxWorkers(1)) // without a watchdog, which would lock the pool too
	fs := make([]func(), batches*size)
	for i := range fs {
		switch i % size {
		case 0:
			fs[i] = p.mu.Lock
		case size - 1:
			fs[i] = p.mu.Unlock
		default:
			fs[i] = func() {}
		}
	}
	defer time.AfterFunc(time.Minute, func() { panic("a worker takes the pool's lock inside a batch") }).Stop()
	n, err := p.SubmitBatch(fs)
	require.NoError(t, err)
	require.Equal(t, len(fs), n)
	require.NoError(t, p.Shutdown(t.Context()))
	require.EqualValues(t, len(fs), p.Stats().Run)
}

// After a peak of a million callbacks, the queue keeps only a few batches.
func TestQueue_KeepsFewSpares(t *testing.T) {
	var q batchQueue
	for range 1000 {
		q.pushCallbacks(make([]func(), 1000))
	}
	for {
		b, _, ok := q.takeCallback()
		if !ok {
			break
		}
		for b != nil {
			if _, ok := b.takeCallback(); !ok {
				q.releaseBatch(b)
				break
			}
		}
	}
	require.Zero(t, q.countWaiting(noLimit))
	require.Nil(t, q.head)
	require.Nil(t, q.tail)
	require.Equal(t, maxSpareBatches, q.spareCount)
}

// After a peak a queue has room for 16,000 callbacks without a new batch. A new batch
// takes 9 bytes for each callback.
func TestQueue_RoomForManyCallbacks(t *testing.T) {
	const n, all = 16_000, 100_000
	var q batchQueue
	fs := make([]func(), all)
	push := func(n int) (made int) {
		before, batches := q.spareCount, 0
		q.pushCallbacks(fs[:n])
		for b := q.head; b != nil; b = b.nextBatch {
			batches++
		}
		return batches - (before - q.spareCount)
	}
	empty := func() {
		for {
			b, _, ok := q.takeCallback()
			if !ok {
				return
			}
			for b != nil {
				if _, ok := b.takeCallback(); !ok {
					q.releaseBatch(b)
					b = nil
				}
			}
		}
	}
	push(all)
	empty()
	require.Zero(t, push(n))
	empty()
	const class = 2304 // the allocator's size class for a batch
	require.LessOrEqual(t, unsafe.Sizeof(batch{}), uintptr(class))
	require.InDelta(t, 9, float64(push(all)*class)/(all-n), 0.1)
}
