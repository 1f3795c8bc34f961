package prom_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/prom"
	"github.com/tickless/tickless/timer"
)

// sizes are the numbers of timers that are pending. 10 million need TICKLESS_BENCH=full,
// and 2 GB.
func sizes() []int {
	switch {
	case testing.Short():
		return []int{1000}
	case os.Getenv("TICKLESS_BENCH") == "full":
		return []int{1000, 100_000, 10_000_000}
	}
	return []int{1000, 100_000}
}

// pending returns a Scheduler with n timers pending, from a minute to a day away.
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

// scraper returns a function that scrapes all of the Scheduler's metrics, as text.
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

// BenchmarkScrape is what a scrape costs.
func BenchmarkScrape(b *testing.B) {
	for _, n := range sizes() {
		b.Run(fmt.Sprintf("pending=%d", n), func(b *testing.B) {
			scrape := scraper(pending(b, n, timer.WithCallbackTimes()))
			b.ReportAllocs()
			for b.Loop() {
				scrape()
			}
		})
	}
}

// BenchmarkStartStop starts and stops a timer beside others, while nobody scrapes, while
// somebody does without a pause, and with all that can be measured turned on. It reports
// the longest of all operations, and what one in a hundred thousand exceeds: both have in
// them how long a scrape holds a lock.
func BenchmarkStartStop(b *testing.B) {
	measured := []timer.Option{timer.WithName("bench"), timer.WithCallbackTimes(), timer.WithLateHandler(time.Second, func(timer.LateTimer) {})}
	for _, n := range sizes() {
		for _, c := range []struct {
			name   string
			scrape bool
			opts   []timer.Option
		}{
			{"scrapes=none", false, nil},
			{"scrapes=none,hooks", false, measured},
			{"scrapes=all-the-time", true, nil},
		} {
			b.Run(fmt.Sprintf("pending=%d/%s", n, c.name), func(b *testing.B) {
				s := pending(b, n, c.opts...)
				stop, stopped := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(stopped)
					for scrape := scraper(s); c.scrape; scrape() {
						select {
						case <-stop:
							return
						default:
						}
					}
				}()
				took := make([]time.Duration, 0, 1<<20)
				for b.Loop() {
					begin := time.Now()
					h, err := s.Start(time.Hour, func() {})
					if err != nil {
						b.Fatal(err)
					}
					h.Stop()
					took = append(took, time.Since(begin))
				}
				close(stop)
				<-stopped
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)-1]), "max-ns")
				b.ReportMetric(float64(took[len(took)-1-len(took)/100_000]), "p99.999-ns")
			})
		}
	}
}
