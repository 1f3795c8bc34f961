package delayqueue

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tickless/tickless/clock"
)

var sizes = []struct {
	name string
	n    int
}{{"n=0", 0}, {"n=1k", 1000}, {"n=100k", 100_000}}

// fill returns a queue with n elements whose deadlines passed within the last hour.
// pastDeadline returns a random deadline of that hour.
func fill(n int) (q *Queue[int], pastDeadline func() time.Time) {
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Now()
	pastDeadline = func() time.Time { return now.Add(-time.Duration(r.Int64N(int64(time.Hour)))) }
	q = New[int]()
	for i := range n {
		q.Offer(i, pastDeadline())
	}
	return q, pastDeadline
}

// A containerHeap is what BenchmarkOfferPoll compares a Queue with: container/heap with a
// mutex. It has the same clock and the same order, but no Remove and no Take.
type containerHeap struct {
	mu    sync.Mutex
	clock clock.Clock
	epoch time.Time
	seq   uint64
	items items
}

type item struct {
	dueAt int64
	seq   uint64
	value int
}

type items []item

func (h items) Len() int { return len(h) }
func (h items) Less(i, j int) bool {
	return h[i].dueAt < h[j].dueAt || h[i].dueAt == h[j].dueAt && h[i].seq < h[j].seq
}
func (h items) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *items) Push(x any)   { *h = append(*h, x.(item)) }
func (h *items) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

func (h *containerHeap) offer(v int, deadline time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seq++
	heap.Push(&h.items, item{int64(deadline.Sub(h.epoch)), h.seq, v})
}

func (h *containerHeap) poll() (int, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.items) == 0 || h.items[0].dueAt > int64(h.clock.Now().Sub(h.epoch)) {
		return 0, false
	}
	return heap.Pop(&h.items).(item).value, true
}

func BenchmarkOfferPoll(b *testing.B) {
	for _, s := range sizes {
		b.Run("impl=tickless/"+s.name, func(b *testing.B) {
			q, pastDeadline := fill(s.n)
			b.ReportAllocs()
			for b.Loop() {
				q.Offer(0, pastDeadline())
				q.Poll()
			}
		})
		b.Run("impl=container-heap/"+s.name, func(b *testing.B) {
			_, pastDeadline := fill(0)
			h := &containerHeap{clock: clock.System(), epoch: time.Now()}
			for i := range s.n {
				h.offer(i, pastDeadline())
			}
			b.ReportAllocs()
			for b.Loop() {
				h.offer(0, pastDeadline())
				h.poll()
			}
		})
	}
}

func BenchmarkOfferRemove(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.name, func(b *testing.B) {
			q, pastDeadline := fill(s.n)
			b.ReportAllocs()
			for b.Loop() {
				ticket, _ := q.Offer(0, pastDeadline())
				q.Remove(ticket)
			}
		})
	}
}

// BenchmarkOfferRemove_Old removes elements that have been pending for a long time, as
// timeouts are.
func BenchmarkOfferRemove_Old(b *testing.B) {
	for _, s := range sizes[1:] {
		b.Run(s.name, func(b *testing.B) {
			q, pastDeadline := fill(0)
			tickets := make([]Ticket, s.n)
			for i := range tickets {
				tickets[i], _ = q.Offer(0, pastDeadline())
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				q.Remove(tickets[i])
				tickets[i], _ = q.Offer(0, pastDeadline())
				if i++; i == len(tickets) {
					i = 0
				}
			}
		})
	}
}

func BenchmarkOfferTake(b *testing.B) {
	b.Run("due", func(b *testing.B) {
		q, pastDeadline := fill(1000)
		ctx := context.Background()
		b.ReportAllocs()
		for b.Loop() {
			q.Offer(0, pastDeadline())
			if _, err := q.Take(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("blocked", func(b *testing.B) { // two goroutines in turn
		q, back := New[int](), New[int]()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				v, err := q.Take(ctx)
				if err != nil {
					return
				}
				back.Offer(v, time.Time{})
			}
		}()
		b.ReportAllocs()
		for b.Loop() {
			q.Offer(0, time.Time{})
			if _, err := back.Take(ctx); err != nil {
				b.Fatal(err)
			}
		}
		cancel()
		<-done
	})
}
