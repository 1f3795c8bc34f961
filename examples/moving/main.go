// Command moving is one small program that can keep its deadlines in timers of this
// process or in tasks of a store: orders of a shop expire unless they are paid in time.
//
//	go run ./moving                         timers of this process
//	go run ./moving -memory                 tasks of a store in memory
//	go run ./moving -file shop.db           in a file: the orders outlive the program
//	go run ./moving -redis localhost:6379   on a server: many processes share the orders
//	go run ./moving -redis in-process       on a small server inside this process
//
// The differences are in local.go and store.go. A store needs another constructor than
// the timer and a name for the callback, because another process may run it. Two stores
// differ in one line.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// deadlines are the times by which orders must be paid.
type deadlines interface {
	Set(order string, amount []byte, d time.Duration) error
	Move(order string, d time.Duration) error
	Remove(order string) error
	Close() error
}

// An expiry is the callback for an order that was not paid in time.
type expiry func(order string, amount []byte)

func main() {
	var w where
	flag.StringVar(&w.redis, "redis", "", "HOST:PORT of a Redis server, or in-process")
	flag.StringVar(&w.file, "file", "", "a file for the orders")
	flag.BoolVar(&w.memory, "memory", false, "as tasks of a store in memory")
	flag.Parse()
	if err := shop(os.Stdout, w.open); err != nil {
		fmt.Fprintln(os.Stderr, "moving:", err)
		os.Exit(1)
	}
}

// where says what implements the deadlines. The zero value means timers of this
// process.
type where struct {
	memory bool
	file   string
	redis  string
}

func (w where) open(f expiry) (deadlines, error) {
	switch {
	case w.memory:
		return newInMemory(f)
	case w.file != "":
		return newInFile(w.file, f)
	case w.redis == "in-process":
		return newOnRedisInProcess(f)
	case w.redis != "":
		return newOnRedis(w.redis, f)
	}
	return newLocal(f)
}

// shop is the program. It does not depend on what implements its deadlines.
func shop(out io.Writer, open func(expiry) (deadlines, error)) error {
	var mu sync.Mutex
	var expired sync.WaitGroup
	// A store may contain orders of other processes, and may call back twice for one
	// order.
	ours := map[string]bool{"order-1": true, "order-3": true}
	expired.Add(len(ours))
	d, err := open(func(order string, amount []byte) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "%s expired: %s\n", order, amount)
		if ours[order] {
			delete(ours, order)
			expired.Done()
		}
	})
	if err != nil {
		return err
	}
	defer d.Close()

	for order, amount := range map[string]string{"order-1": "12 EUR", "order-2": "34 EUR", "order-3": "56 EUR"} {
		if err := d.Set(order, []byte(amount), time.Minute); err != nil {
			return err
		}
	}
	if err := d.Remove("order-2"); err != nil { // it was paid
		return err
	}
	// Let the others expire sooner.
	if err := d.Move("order-1", 20*time.Millisecond); err != nil {
		return err
	}
	if err := d.Move("order-3", 400*time.Millisecond); err != nil {
		return err
	}
	expired.Wait()
	return nil
}
