// Command moving is one small program on the timer of this process, on tasks in a
// store, and on those on Redis: orders of a shop that expire unless they are paid in
// time.
//
//	go run ./moving                         in this process
//	go run ./moving -memory                 as tasks of a store, which is in memory
//	go run ./moving -redis in-process       on Redis, a small one inside this process
//	go run ./moving -redis localhost:6379   on a server: the orders outlive the program
//
// What differs is in local.go, store.go and redis.go: another constructor, and the callback
// has a name, since another process may be the one to run it.
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

// An expiry is called for an order that was not paid in time.
type expiry func(order string, amount []byte)

func main() {
	addr := flag.String("redis", "", "HOST:PORT of a Redis server, or in-process (default: no Redis)")
	memory := flag.Bool("memory", false, "as tasks of a store in memory")
	flag.Parse()
	if *memory {
		*addr = inMemory
	}
	if err := run(os.Stdout, *addr); err != nil {
		fmt.Fprintln(os.Stderr, "moving:", err)
		os.Exit(1)
	}
}

// inMemory is an address for no server, but a store in memory.
const inMemory = "memory"

func run(out io.Writer, addr string) error {
	switch addr {
	case "":
		return shop(out, newLocal)
	case inMemory:
		return shop(out, newInMemory)
	}
	return shop(out, func(f expiry) (deadlines, error) { return newOnRedis(addr, f) })
}

// shop is the program. It does not know where its deadlines are.
func shop(out io.Writer, open func(expiry) (deadlines, error)) error {
	var mu sync.Mutex
	var expired sync.WaitGroup
	expired.Add(2)
	d, err := open(func(order string, amount []byte) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "%s expired: %s\n", order, amount)
		expired.Done()
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
	// The others are impatient.
	if err := d.Move("order-1", 20*time.Millisecond); err != nil {
		return err
	}
	if err := d.Move("order-3", 400*time.Millisecond); err != nil {
		return err
	}
	expired.Wait()
	return nil
}
