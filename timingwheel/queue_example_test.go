package timingwheel_test

import (
	"fmt"

	"github.com/tickless/tickless/bucket"
	"github.com/tickless/tickless/timingwheel"
)

// One queue sorts the buckets of several wheels.
func ExampleWithQueue() {
	type queued struct {
		b          bucket.Bucket
		expiration int64
	}
	var queue []queued // a real queue sorts, and replaces a bucket that is offered again
	w, _ := timingwheel.New[string](1, 256, 0, timingwheel.WithQueue(
		func(b bucket.Bucket, _ uint32, expiration int64) {
			fmt.Println("queued until", expiration)
			queue = append(queue, queued{b, expiration})
		}))
	w.Add(5, "a")
	w.Add(5, "b") // the bucket is already queued
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
