package delayqueue_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tickless/tickless/delayqueue"
)

func Example() {
	q := delayqueue.New[string]()
	now := time.Now()
	q.Offer("third", now.Add(20*time.Millisecond))
	q.OfferAfter("first", 0)
	q.Offer("second", now.Add(10*time.Millisecond))

	for range 3 {
		v, err := q.Take(context.Background())
		if err != nil {
			return
		}
		fmt.Println(v)
	}
	// Output:
	// first
	// second
	// third
}

func ExampleQueue_Take_context() {
	q := delayqueue.New[string]()
	q.OfferAfter("far off", time.Hour)

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := q.Take(ctx)
	fmt.Println(err)
	fmt.Println(q.Len())
	// Output:
	// context deadline exceeded
	// 1
}

func ExampleQueue_Remove() {
	q := delayqueue.New[string]()
	ticket, _ := q.OfferAfter("resend the packet", time.Second)

	fmt.Println(q.Remove(ticket)) // the acknowledgment has come
	_, ok := q.Remove(ticket)
	fmt.Println(ok)
	// Output:
	// resend the packet true
	// false
}

// An event loop sleeps until the first element is due. It wakes earlier only when Offer
// reports a new first element.
func ExampleQueue_Poll() {
	q := delayqueue.New[string]()
	earlier := make(chan struct{}, 1)
	offer := func(v string, deadline time.Time) {
		if _, head := q.Offer(v, deadline); head {
			select {
			case earlier <- struct{}{}:
			default: // the event loop has already been woken
			}
		}
	}
	now := time.Now()
	offer("b", now.Add(20*time.Millisecond))
	offer("a", now.Add(10*time.Millisecond))

	for n := 0; n < 2; {
		if v, ok := q.Poll(); ok {
			fmt.Println(v)
			n++
			continue
		}
		var alarm <-chan time.Time
		if _, deadline, ok := q.Peek(); ok {
			alarm = time.After(time.Until(deadline))
		}
		select {
		case <-alarm:
		case <-earlier:
		}
	}
	// Output:
	// a
	// b
}

func ExampleQueue_Drain() {
	q := delayqueue.New[string]()
	q.OfferAfter("tomorrow", 24*time.Hour)
	q.OfferAfter("now", 0)
	fmt.Println(q.Drain())
	fmt.Println(q.Len())
	// Output:
	// [now tomorrow]
	// 0
}
