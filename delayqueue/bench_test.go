package delayqueue

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
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

func BenchmarkOfferPoll(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.name, func(b *testing.B) {
			q, pastDeadline := fill(s.n)
			b.ReportAllocs()
			for b.Loop() {
				q.Offer(0, pastDeadline())
				q.Poll()
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
