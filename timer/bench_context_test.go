package timer_test

import (
	"context"
	"testing"
	"time"

	"github.com/tickless/tickless/timer"
)

// ctxImpl makes contexts with a timeout: of package context and of a Scheduler.
type ctxImpl struct {
	name string
	with func(context.Context, time.Duration) (context.Context, context.CancelFunc)
}

func ctxImpls(s *timer.Scheduler) []ctxImpl {
	return []ctxImpl{{"time", context.WithTimeout}, {"tickless", s.WithTimeout}}
}

// BenchmarkContext is the life of a context, on one goroutine: what is asked of it,
// and whether its parent is shared by all or made for it alone.
func BenchmarkContext(b *testing.B) {
	s := timer.New()
	defer s.Close()
	for _, use := range []struct {
		name string
		ask  func(context.Context)
	}{
		{"nothing", func(context.Context) {}},
		{"Err", func(ctx context.Context) { ctx.Err() }},
		{"Done", func(ctx context.Context) { ctx.Done() }},
		{"1000Err", func(ctx context.Context) {
			for range 1000 {
				ctx.Err()
			}
		}},
	} {
		for _, parent := range []string{"shared", "own"} {
			for _, impl := range ctxImpls(s) {
				b.Run("asked="+use.name+"/parent="+parent+"/impl="+impl.name, func(b *testing.B) {
					b.ReportAllocs()
					shared, cancelShared := context.WithCancel(context.Background())
					defer cancelShared()
					for b.Loop() {
						ctx, cancelParent := shared, func() {}
						if parent == "own" {
							ctx, cancelParent = context.WithCancel(context.Background())
						}
						ctx, cancel := impl.with(ctx, time.Minute)
						use.ask(ctx)
						cancel()
						cancelParent()
					}
				})
			}
		}
	}
}

// BenchmarkContextFive is five contexts, one after the other, below one that has
// a deadline too.
func BenchmarkContextFive(b *testing.B) {
	s := timer.New()
	defer s.Close()
	for _, asked := range []string{"nothing", "Done"} {
		for _, impl := range ctxImpls(s) {
			b.Run("asked="+asked+"/impl="+impl.name, func(b *testing.B) {
				b.ReportAllocs()
				root, cancelRoot := context.WithCancel(context.Background())
				defer cancelRoot()
				for b.Loop() {
					parent, cancelParent := impl.with(root, time.Hour)
					for range 5 {
						ctx, cancel := impl.with(parent, time.Minute)
						if asked == "Done" {
							ctx.Done()
						}
						cancel()
					}
					cancelParent()
				}
			})
		}
	}
}

// BenchmarkContextMethod is one call of a method of a context that somebody waits
// for.
func BenchmarkContextMethod(b *testing.B) {
	s := timer.New()
	defer s.Close()
	root, cancelRoot := context.WithCancel(context.Background())
	defer cancelRoot()
	for _, impl := range ctxImpls(s) {
		ctx, cancel := impl.with(root, time.Hour)
		defer cancel()
		ctx.Done()
		b.Run("method=Done/impl="+impl.name, func(b *testing.B) {
			for b.Loop() {
				ctx.Done()
			}
		})
		b.Run("method=Err/impl="+impl.name, func(b *testing.B) {
			for b.Loop() {
				ctx.Err()
			}
		})
	}
}
