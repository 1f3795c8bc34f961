package executor_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/tickless/tickless/executor"
)

func ExamplePool() {
	pool := executor.NewPool()
	var mu sync.Mutex
	sum := 0
	for i := range 100 {
		pool.Submit(func() {
			mu.Lock()
			defer mu.Unlock()
			sum += i
		})
	}
	if err := pool.Shutdown(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(sum, pool.Stats().Run)
	fmt.Println(pool.Submit(func() {}))
	// Output:
	// 4950 100
	// executor: closed
}

// Callbacks run on the caller's goroutine, one after another. That suits a test.
func ExampleInline() {
	e := executor.NewInline()
	e.Submit(func() {
		e.Submit(func() { fmt.Println("inner") }) // runs here and now
		fmt.Println("outer")
	})
	fmt.Println("after", e.Stats().Run, "callbacks")
	// Output:
	// inner
	// outer
	// after 2 callbacks
}

// A callback that blocks delays no other.
func ExampleGoroutines() {
	e := executor.NewGoroutines()
	ready := make(chan struct{})
	e.Submit(func() { <-ready })
	e.Submit(func() { close(ready) })
	fmt.Println(e.Shutdown(context.Background()), e.Stats().Run)
	// Output: <nil> 2
}

func ExamplePool_SubmitBatch() {
	pool := executor.NewPool(executor.WithMaxWorkers(1))
	batch := make([]func(), 0, 4)
	for i := range 4 {
		batch = append(batch, func() { fmt.Println("callback", i) })
	}
	n, err := pool.SubmitBatch(batch) // one worker keeps the order
	pool.Shutdown(context.Background())
	fmt.Println(n, err)
	// Output:
	// callback 0
	// callback 1
	// callback 2
	// callback 3
	// 4 <nil>
}

func ExampleWithPanicHandler() {
	e := executor.NewInline(executor.WithPanicHandler(func(v any, stack []byte) {
		fmt.Println("recovered:", v)
	}))
	e.Submit(func() { panic("boom") })
	e.Submit(func() { fmt.Println("the next one runs") })
	// Output:
	// recovered: boom
	// the next one runs
}
