// Command moving shows how a program moves from timers to durable tasks. It is a shop:
// orders expire unless they are paid in time. The deadlines are timers of this process, or
// tasks in a store.
//
//	go run ./moving                         timers of this process
//	go run ./moving -memory                 tasks of a store in memory
//	go run ./moving -file shop.db           in a file: the orders outlive the program
//	go run ./moving -redis localhost:6379   on a server: many processes share the orders
//	go run ./moving -redis in-process       on a small server inside this process
//
// The file local.go uses timers, store.go tasks. The stores differ only in how they are
// opened.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// deadlines calls an expiryFunc for each order that is not paid in time.
type deadlines interface {
	Set(order string, amount []byte, d time.Duration) error
	Move(order string, d time.Duration) error
	Remove(order string) error
	Close() error
}

// An expiryFunc is called with an order that was not paid in time.
type expiryFunc func(order string, amount []byte)

func main() {
	var b backend
	flag.StringVar(&b.redisAddr, "redis", "", "HOST:PORT of a Redis server, or in-process")
	flag.StringVar(&b.filePath, "file", "", "a file for the orders")
	flag.BoolVar(&b.inMemory, "memory", false, "as tasks of a store in memory")
	flag.Parse()
	if err := runShop(os.Stdout, b.open); err != nil {
		fmt.Fprintln(os.Stderr, "moving:", err)
		os.Exit(1)
	}
}

// backend says which implementation of deadlines to use. The zero value means timers.
type backend struct {
	inMemory  bool
	filePath  string
	redisAddr string // HOST:PORT or in-process
}

func (b backend) open(f expiryFunc) (deadlines, error) {
	switch {
	case b.inMemory:
		return newMemoryDeadlines(f)
	case b.filePath != "":
		return newFileDeadlines(b.filePath, f)
	case b.redisAddr == "in-process":
		return newInProcessRedisDeadlines(f)
	case b.redisAddr != "":
		return newRedisDeadlines(b.redisAddr, f)
	}
	return newTimerDeadlines(f)
}

// runShop is the program. open opens an implementation of deadlines.
func runShop(out io.Writer, open func(expiryFunc) (deadlines, error)) error {
	var mu sync.Mutex
	var expired sync.WaitGroup
	// A store may also report orders of other processes, and report an order twice.
	ownOrders := map[string]bool{"order-1": true, "order-3": true}
	expired.Add(len(ownOrders))
	d, err := open(func(order string, amount []byte) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "%s expired: %s\n", order, amount)
		if ownOrders[order] {
			delete(ownOrders, order)
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
	// The other orders expire in less than a second.
	if err := d.Move("order-1", 20*time.Millisecond); err != nil {
		return err
	}
	if err := d.Move("order-3", 400*time.Millisecond); err != nil {
		return err
	}
	expired.Wait()
	return nil
}
