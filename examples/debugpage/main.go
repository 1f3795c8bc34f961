// Command debugpage serves the debug page of a load of request timeouts.
//
//	go run ./debugpage                          # http://localhost:PORT/
//	go run ./debugpage localhost:6060 20000     # an address, and requests a second
package main

import (
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/tickless/tickless/observe/debugpage"
	"github.com/tickless/tickless/timer"
)

func main() {
	address, rate := "localhost:0", 100_000
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	if len(os.Args) > 2 {
		var err error
		if rate, err = strconv.Atoi(os.Args[2]); err != nil || rate < 1 {
			log.Fatalf("the second argument is the number of requests a second, got %q", os.Args[2])
		}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	s := timer.New(timer.WithName("requests"))
	go sendRequests(s, rate, nil)
	fmt.Printf("http://%s/ shows the load until you interrupt it\n", l.Addr())
	log.Fatal((&http.Server{Handler: debugpage.Handler(), ReadHeaderTimeout: 10 * time.Second}).Serve(l))
}

// sendRequests sends requests until stop is closed. Each starts a timeout of 0.1 to 8 s.
// Nine of ten are answered in time.
func sendRequests(s *timer.Scheduler, rate int, stop <-chan struct{}) {
	const interval = 10 * time.Millisecond
	ticker := s.NewTicker(interval)
	defer ticker.Stop()
	for sent, start := 0, time.Now(); ; {
		for due := int(time.Since(start).Seconds() * float64(rate)); sent < due; sent++ {
			sendRequest(s)
		}
		select {
		case <-ticker.C:
		case <-stop:
			return
		}
	}
}

func sendRequest(s *timer.Scheduler) {
	d := 100*time.Millisecond + time.Duration(rand.Int64N(int64(8*time.Second)))
	timeout, err := s.Start(d, func() {})
	if err != nil {
		return // the Scheduler is closed
	}
	if rand.IntN(10) > 0 {
		_, _ = s.Start(time.Duration(rand.Float64()*0.9*float64(d)), func() { timeout.Stop() })
	}
}
