package benchmarks

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tickless/tickless/deadline"
)

// WithTimeout makes a context with a timeout and cancels it: of package context
// (impl=time) and of package deadline. The parent is the background, or a context that
// can be cancelled and is the parent of all.
func WithTimeout(b *testing.B) {
	type withTimeout func(context.Context, time.Duration) (context.Context, context.CancelFunc)
	for _, impl := range []struct {
		name string
		f    withTimeout
	}{{"time", context.WithTimeout}, {"tickless", deadline.WithTimeout}} {
		for _, parent := range []string{"background", "cancellable"} {
			for _, p := range procs {
				b.Run(fmt.Sprintf("impl=%s/parent=%s/p=%d", impl.name, parent, p), func(b *testing.B) {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p))
					ctx := context.Background()
					if parent == "cancellable" {
						var cancel context.CancelFunc
						ctx, cancel = context.WithCancel(ctx)
						defer cancel()
					}
					b.ReportAllocs()
					b.ResetTimer()
					var wg sync.WaitGroup
					for g := range p {
						wg.Go(func() {
							for range b.N*(g+1)/p - b.N*g/p {
								_, cancel := impl.f(ctx, time.Minute)
								cancel()
							}
						})
					}
					wg.Wait()
				})
			}
		}
	}
}
