// Command ants runs the callbacks of timers on a pool of panjf2000/ants: a program that
// has such a pool already need not have another one beside it.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"github.com/panjf2000/ants/v2"
	"github.com/tickless/tickless/timer"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run has ten timers fire on a pool of two workers.
func run(w io.Writer) error {
	pool, err := ants.NewPool(2)
	if err != nil {
		return err
	}
	defer pool.Release()

	// The pool has the method Submit(func()) error: that makes it an Executor. If all
	// workers are busy its Submit waits, but no other timer does.
	s := timer.New(timer.WithExecutor(pool))
	var mu sync.Mutex
	ran := 0
	for range 10 {
		_, err := s.Start(10*time.Millisecond, func() {
			time.Sleep(time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			ran++
		})
		if err != nil {
			return err
		}
	}
	for s.Len() > 0 {
		time.Sleep(time.Millisecond)
	}
	// Shutdown waits for the callbacks, and leaves the pool open.
	if err := s.Shutdown(context.Background()); err != nil {
		return err
	}
	fmt.Fprintln(w, ran, "callbacks ran on", pool.Cap(), "workers; the pool is closed:", pool.IsClosed())
	return nil
}
