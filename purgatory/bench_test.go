package purgatory_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
)

// benchOp is a request of minimal size.
type benchOp struct {
	purgatory.Delayed[int]
	ready atomic.Bool
}

func (o *benchOp) TryComplete() bool { return o.ready.Load() }
func (o *benchOp) OnComplete()       {}
func (o *benchOp) OnExpiration()     {}

// benchKeys returns sets of 3 different keys, each less than space.
func benchKeys(space int) [][]int {
	sets := make([][]int, 1<<12)
	for i := range sets {
		a := rand.IntN(space)
		b := (a + 1 + rand.IntN(space/3)) % space
		c := (b + 1 + rand.IntN(space/3)) % space
		sets[i] = []int{a, b, c}
	}
	return sets
}

func newBench(b *testing.B) *purgatory.Purgatory[int] {
	s := timer.New()
	p := purgatory.New[int](s)
	b.Cleanup(func() {
		p.Shutdown(b.Context())
		s.Close()
	})
	return p
}

// The main use of the package: an operation is added with 3 keys, and completed by a
// check of one of them.
func BenchmarkWatchAndCheck(b *testing.B) {
	for _, space := range []int{100, 1_000_000} {
		keys := benchKeys(space)
		b.Run(fmt.Sprintf("keys=3of%d/p=1", space), func(b *testing.B) {
			p := newBench(b)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				watchAndCheck(p, keys[i&(1<<12-1)])
				i++
			}
		})
		b.Run(fmt.Sprintf("keys=3of%d/p=%d", space, runtime.GOMAXPROCS(0)), func(b *testing.B) {
			p := newBench(b)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				i := rand.IntN(len(keys))
				for pb.Next() {
					watchAndCheck(p, keys[i&(1<<12-1)])
					i++
				}
			})
		})
	}
}

func watchAndCheck(p *purgatory.Purgatory[int], keys []int) {
	op := new(benchOp)
	p.CompleteOrWatch(op, time.Minute, keys...)
	op.ready.Store(true)
	p.CheckAndComplete(keys[0])
}

// An operation that is complete at the start is never watched.
func BenchmarkCompleteOrWatch_AtOnce(b *testing.B) {
	p := newBench(b)
	b.ReportAllocs()
	for b.Loop() {
		op := new(benchOp)
		op.ready.Store(true)
		p.CompleteOrWatch(op, time.Minute, 1, 2, 3)
	}
}

// A check that completes nothing: its cost for each waiting operation.
func BenchmarkCheckAndComplete_Watchers(b *testing.B) {
	for _, n := range []int{0, 1, 100, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			p := newBench(b)
			for range n {
				p.CompleteOrWatch(new(benchOp), time.Hour, 1)
			}
			b.ReportAllocs()
			for b.Loop() {
				p.CheckAndComplete(1)
			}
		})
	}
}
