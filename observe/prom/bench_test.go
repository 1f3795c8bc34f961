package prom_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/prom"
	"github.com/tickless/tickless/timer"
)

// sizes returns the numbers of pending timers to measure with. With TICKLESS_BENCH=full
// they include 10 million, which need 2 GB.
func sizes() []int {
	switch {
	case testing.Short():
		return []int{1000}
	case os.Getenv("TICKLESS_BENCH") == "full":
		return []int{1000, 100_000, 10_000_000}
	}
	return []int{1000, 100_000}
}

// pending returns a Scheduler with n pending timers, due in a minute to a day.
func pending(b *testing.B, n int, opts ...timer.Option) *timer.Scheduler {
	b.Helper()
	s := timer.New(opts...)
	b.Cleanup(func() { s.Close() })
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		if _, err := s.Start(time.Minute+time.Duration(r.Int64N(int64(24*time.Hour))), func() {}); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// scraper returns a function that scrapes all metrics of the Scheduler as text.
func scraper(s *timer.Scheduler) func() {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.New(observe.Scheduler("bench", s)))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true})
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	return func() { handler.ServeHTTP(&discard{http.Header{}, io.Discard}, request) }
}

type discard struct {
	header http.Header
	io.Writer
}

func (d *discard) Header() http.Header { return d.header }
func (d *discard) WriteHeader(int)     {}

// BenchmarkScrape measures a scrape.
func BenchmarkScrape(b *testing.B) {
	for _, n := range sizes() {
		b.Run(fmt.Sprintf("pending=%d", n), func(b *testing.B) {
			scrape := scraper(pending(b, n))
			b.ReportAllocs()
			for b.Loop() {
				scrape()
			}
		})
	}
}

// BenchmarkStartStop stops a timer and starts another, without and with concurrent
// scrapes. The metric hold-ns is the longest operation during a scrape, as a median over
// the scrapes. It shows how long scrapes hold a lock.
func BenchmarkStartStop(b *testing.B) {
	for _, n := range sizes() {
		b.Run(fmt.Sprintf("pending=%d", n), func(b *testing.B) { startStop(b, n) })
		b.Run(fmt.Sprintf("pending=%d/scraped", n), func(b *testing.B) { startStopScraped(b, n) })
	}
}

func startStop(b *testing.B, n int) {
	s := pending(b, n)
	churn := churner(b, s)
	for b.Loop() {
		churn()
	}
}

func startStopScraped(b *testing.B, n int) {
	s := pending(b, n)
	churn := churner(b, s)
	var scrapes atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for scrape := scraper(s); ; scrapes.Add(1) {
			select {
			case <-stop:
				return
			default:
				scrape()
			}
		}
	}()
	longest := []time.Duration{0} // of each scrape
	for scrape := scrapes.Load(); b.Loop(); {
		begin := time.Now()
		churn()
		took := time.Since(begin)
		longest[len(longest)-1] = max(longest[len(longest)-1], took)
		if now := scrapes.Load(); now != scrape {
			scrape = now
			longest = append(longest, 0)
		}
	}
	close(stop)
	<-stopped
	slices.Sort(longest)
	b.ReportMetric(float64(longest[len(longest)/2]), "hold-ns")
	b.ReportMetric(float64(len(longest)), "scrapes")
}

// churner returns a function that stops one of a thousand timers and starts another.
func churner(b *testing.B, s *timer.Scheduler) func() {
	b.Helper()
	handles := make([]timer.Handle, 1024)
	start := func(i int) {
		h, err := s.Start(time.Hour, func() {})
		if err != nil {
			b.Fatal(err)
		}
		handles[i] = h
	}
	for i := range handles {
		start(i)
	}
	i := 0
	return func() {
		i = (i + 1) % len(handles)
		handles[i].Stop()
		start(i)
	}
}
