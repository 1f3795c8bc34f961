package deadline_test

import (
	"context"
	"testing"
	"time"

	"github.com/tickless/tickless/deadline"
)

// BenchmarkContext makes a context and its parent, uses the context, and cancels both, on
// one goroutine.
func BenchmarkContext(b *testing.B) {
	for _, use := range []struct {
		name string
		ask  func(context.Context)
	}{
		{"nothing", func(context.Context) {}},
		{"Err", func(ctx context.Context) { ctx.Err() }},
		{"Done", func(ctx context.Context) { ctx.Done() }},
		{"child", func(ctx context.Context) {
			_, cancel := context.WithCancel(ctx)
			cancel()
		}},
		{"1000Err", func(ctx context.Context) {
			for range 1000 {
				ctx.Err()
			}
		}},
	} {
		for _, impl := range []struct {
			name string
			with func(context.Context, time.Duration) (context.Context, context.CancelFunc)
		}{{"time", context.WithTimeout}, {"tickless", deadline.WithTimeout}} {
			b.Run("asked="+use.name+"/impl="+impl.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					parent, cancelParent := context.WithCancel(context.Background())
					ctx, cancel := impl.with(parent, time.Minute)
					use.ask(ctx)
					cancel()
					cancelParent()
				}
			})
		}
	}
}
