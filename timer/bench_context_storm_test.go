package timer_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/tickless/tickless/timer"
)

// BenchmarkContextStorm cancels a parent of package context's with 100,000 children
// that somebody waits for, until the last of them is done.
func BenchmarkContextStorm(b *testing.B) {
	s := timer.New()
	defer s.Close()
	const n = 100_000
	for _, impl := range ctxImpls(s) {
		b.Run("impl="+impl.name, func(b *testing.B) {
			ctxs, cancels := make([]context.Context, n), make([]context.CancelFunc, n)
			goroutines := 0
			for b.Loop() {
				b.StopTimer()
				parent, cancelParent := context.WithCancel(context.Background())
				for i := range ctxs {
					ctxs[i], cancels[i] = impl.with(parent, time.Hour)
					ctxs[i].Done()
				}
				before := runtime.NumGoroutine()
				b.StartTimer()
				cancelParent()
				goroutines = max(goroutines, runtime.NumGoroutine()-before)
				for _, ctx := range ctxs {
					<-ctx.Done()
				}
				b.StopTimer()
				for _, cancel := range cancels {
					cancel()
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(goroutines), "goroutines")
		})
	}
}

// BenchmarkContextLive is what a million contexts take that nobody waits for.
func BenchmarkContextLive(b *testing.B) {
	s := timer.New()
	defer s.Close()
	const n = 1_000_000
	for _, impl := range ctxImpls(s) {
		b.Run("impl="+impl.name, func(b *testing.B) {
			ctxs, cancels := make([]context.Context, n), make([]context.CancelFunc, n)
			for b.Loop() {
				clear(ctxs)
				clear(cancels)
				before := heapInUse()
				for i := range ctxs {
					ctxs[i], cancels[i] = impl.with(context.Background(), time.Minute)
				}
				b.ReportMetric(float64(heapInUse()-before)/n, "B/ctx")
				b.ReportMetric(float64(s.Len()), "timers")
				for _, cancel := range cancels {
					cancel()
				}
			}
		})
	}
}
