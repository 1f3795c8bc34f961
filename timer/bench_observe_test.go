package timer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tickless/tickless/timer"
)

// What it costs to look at very many timers.
func BenchmarkObserve(b *testing.B) {
	for _, n := range []int{4_000, 1_000_000, 10_000_000} {
		if n > 1_000_000 && testing.Short() {
			continue
		}
		s := timer.New()
		for i := range n {
			if _, err := s.Start(time.Hour+time.Duration(i)*time.Millisecond, func() {}); err != nil {
				b.Fatal(err)
			}
		}
		for name, look := range map[string]func(){
			"Forecast":      func() { s.Forecast(time.Second, time.Minute, time.Hour, 2*time.Hour, 24*time.Hour) },
			"Levels":        func() { s.Levels() },
			"SamplePending": func() { s.SamplePending(4096) },
			"Stats":         func() { _ = s.Stats() },
		} {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				for b.Loop() {
					look()
				}
			})
		}
		s.Close()
	}
}

// What the options that observe cost each start and stop, and each expiry.
func BenchmarkObserved(b *testing.B) {
	for _, o := range []struct {
		name string
		opts []timer.Option
	}{
		{"nothing", nil},
		{"named", []timer.Option{timer.WithName("observed")}},
		{"hooks", []timer.Option{
			timer.WithName("observed"), timer.WithOrigins(1000),
			timer.WithLateHandler(time.Second, func(timer.LateTimer) {}),
		}},
		{"times", []timer.Option{timer.WithCallbackTimes()}},
	} {
		b.Run("StartStop/"+o.name, func(b *testing.B) {
			s := timer.New(o.opts...)
			defer s.Close()
			for b.Loop() {
				h, err := s.Start(time.Minute, func() {})
				if err != nil || !h.Stop() {
					b.Fatal(err)
				}
			}
		})
		b.Run("Expiry/"+o.name, func(b *testing.B) {
			s := timer.New(o.opts...)
			defer s.Close()
			const burst = 10_000
			done := make(chan struct{}, burst)
			f := func() { done <- struct{}{} }
			for b.Loop() {
				for range burst {
					if _, err := s.Start(time.Millisecond, f); err != nil {
						b.Fatal(err)
					}
				}
				for range burst {
					<-done
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/burst, "ns/timer")
		})
	}
}
