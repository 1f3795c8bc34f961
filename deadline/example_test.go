package deadline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tickless/tickless/deadline"
)

func ExampleWithTimeout() {
	ctx, cancel := deadline.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	<-ctx.Done()
	fmt.Println(ctx.Err())
	// Output: context deadline exceeded
}

// A derived context reports the cause too.
func ExampleWithTimeoutCause() {
	ctx, cancel := deadline.WithTimeoutCause(context.Background(), time.Millisecond, errors.New("the database is slow"))
	defer cancel()
	child, cancelChild := context.WithCancel(ctx)
	defer cancelChild()
	<-child.Done()
	fmt.Println(child.Err(), context.Cause(child))
	// Output: context deadline exceeded the database is slow
}

func ExampleWithDeadline() {
	ctx, cancel := deadline.WithDeadline(context.Background(), time.Now().Add(time.Hour))
	defer cancel()
	for range 3 {
		if ctx.Err() != nil { // costs no timer
			return
		}
	}
	fmt.Println("in time")
	// Output: in time
}

func ExampleWithDeadlineCause() {
	ctx, cancel := deadline.WithDeadlineCause(context.Background(), time.Now().Add(-time.Second), errors.New("the shop has closed"))
	defer cancel()
	fmt.Println(context.Cause(ctx))
	// Output: the shop has closed
}

// A deadline passes, and a later one replaces it.
func ExampleDeadline() {
	var d deadline.Deadline
	d.Set(time.Now().Add(time.Millisecond))
	<-d.Done()
	fmt.Println(d.Err(), errors.Is(d.Err(), os.ErrDeadlineExceeded))
	d.Set(time.Now().Add(time.Hour))
	fmt.Println(d.Err())
	// Output:
	// i/o timeout true
	// <nil>
}
