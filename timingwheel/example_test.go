package timingwheel_test

import (
	"fmt"

	"github.com/tickless/tickless/bucket"
	"github.com/tickless/tickless/timingwheel"
)

// The usage of the package comment: tick 1, four slots a level, from time 0 on.
func Example() {
	w, err := timingwheel.New[string](1, 4, 0)
	if err != nil {
		panic(err)
	}
	id, _ := w.Add(7, "seven")
	w.Add(2, "two")
	w.Add(21, "twenty-one")
	fmt.Println("moved:", w.Move(id, 9))

	// An event loop sleeps until Next, and then asks for what is due.
	var due [64]timingwheel.Expired[string]
	for now, ok := w.Next(); ok; now, ok = w.Next() {
		for more := true; more; {
			var n int
			n, more = w.Advance(now, due[:])
			for _, e := range due[:n] {
				fmt.Println(now, e.Value)
			}
		}
	}
	// Output:
	// moved: true
	// 2 two
	// 9 seven
	// 21 twenty-one
}

func ExampleWheel_Add() {
	w, _ := timingwheel.New[string](10, 256, 1000)
	_, ok := w.Add(1000, "now")
	fmt.Println(ok)
	_, ok = w.Add(1001, "within this tick: due at its end")
	fmt.Println(ok)
	fmt.Println(w.Next())
	// Output:
	// false
	// true
	// 1010 true
}

// A queue outside sorts the buckets of many wheels.
func ExampleWithQueue() {
	type queued struct {
		b          bucket.Bucket
		expiration int64
	}
	var queue []queued // in place of one that sorts, and replaces what is offered again
	w, _ := timingwheel.New[string](1, 256, 0, timingwheel.WithQueue(
		func(b bucket.Bucket, _ uint32, expiration int64) {
			fmt.Println("queued until", expiration)
			queue = append(queue, queued{b, expiration})
		}))
	w.Add(5, "a")
	w.Add(5, "b") // the bucket is queued already
	w.Add(8, "c")

	var due [64]timingwheel.Expired[string]
	for _, q := range queue {
		w.Expire(q.b, q.expiration)
		for more := true; more; {
			var n int
			n, more = w.Drain(due[:])
			for _, e := range due[:n] {
				fmt.Println(e.Deadline, e.Value)
			}
		}
	}
	// Output:
	// queued until 5
	// queued until 8
	// 5 a
	// 5 b
	// 8 c
}
