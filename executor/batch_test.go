package executor

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A random sequence of what the pool does to its queue, against a slice.
func TestQueue_AgainstAModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var q queue
	var model []int // what waits, in order
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
			q.push(callback(next))
			model = append(model, next)
			next++
		case op == 10:
			// Few, or the queue would never run empty.
			fs := make([]func(), r.IntN(10))
			if r.IntN(20) == 0 {
				fs = make([]func(), r.IntN(700))
			}
			for i := range fs {
				fs[i] = callback(next)
				model = append(model, next)
				next++
			}
			q.pushAll(fs)
			clear(fs)
		case op < 20 && len(holders) < 8: // a worker comes
			b, f, ok := q.take()
			require.Equal(t, len(model) > 0, ok)
			if ok {
				ran(f)
			}
			if b != nil {
				require.Less(t, b.next.Load(), b.n, "nobody holds a batch for nothing")
				holders = append(holders, b)
				held[b]++
			}
		case op < 25 && len(holders) > 0: // one comes back, early if it panicked
			i := r.IntN(len(holders))
			b := holders[i]
			holders = append(holders[:i], holders[i+1:]...)
			if held[b]--; held[b] == 0 {
				delete(held, b)
			}
			q.release(b)
		case len(holders) > 0:
			if f, ok := holders[r.IntN(len(holders))].take(); ok {
				ran(f)
			}
		}

		require.Equal(t, len(model), q.len())
		for b, n := range held {
			require.EqualValues(t, n, b.holds)
		}
		spares := 0
		for b := q.spare; b != nil; b = b.link {
			spares++
			require.NotContains(t, held, b, "a batch is no spare while a worker holds it")
			require.EqualValues(t, [2]int32{}, [2]int32{b.next.Load(), b.n})
			require.Nil(t, b.funcs[r.IntN(batchSize)])
		}
		require.Equal(t, spares, q.spares)
		require.LessOrEqual(t, spares, maxSpares)
	}
}

// Memory falls after a peak: of a million callbacks' batches a few are kept.
func TestQueue_KeepsFewSpares(t *testing.T) {
	var q queue
	for range 1000 {
		q.pushAll(make([]func(), 1000))
	}
	for {
		b, _, ok := q.take()
		if !ok {
			break
		}
		for b != nil {
			if _, ok := b.take(); !ok {
				q.release(b)
				break
			}
		}
	}
	require.Zero(t, q.len())
	require.Nil(t, q.head)
	require.Nil(t, q.tail)
	require.Equal(t, maxSpares, q.spares)
}

// What TestQueue_KeepsFewSpares keeps is enough for 16,000 callbacks.
func TestPool_AllocatesLittle(t *testing.T) {
	p := NewPool(WithWorkers(1))
	defer p.Close()
	fs := make([]func(), 100_000)
	for i := range fs {
		fs[i] = func() {}
	}
	// wave has n callbacks wait behind one that is held up, and returns what that
	// allocated.
	wave := func(n int) int {
		open := make(chan struct{})
		done := make(chan struct{})
		begun := make(chan struct{})
		require.NoError(t, p.Submit(func() { close(begun); <-open }))
		<-begun
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := p.SubmitBatch(fs[:n])
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		require.NoError(t, p.Submit(func() { close(done) }))
		close(open)
		<-done
		return int(after.TotalAlloc - before.TotalAlloc)
	}
	wave(16_000)
	few, many := wave(16_000), wave(len(fs))
	t.Logf("16,000: %d bytes; %d: %d", few, len(fs), many)
	require.Less(t, few, 50_000)
	require.InDelta(t, 9, float64(many)/float64(len(fs)-16_384), 2)
}
