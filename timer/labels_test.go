package timer_test

import (
	"context"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

// Callbacks do not have the profiler labels of the goroutine that started the timer.
func TestScheduler_CallbacksHaveNoLabelsOfOthers(t *testing.T) {
	for name, opts := range map[string][]timer.Option{
		"own pool":   nil,
		"goroutines": {timer.WithExecutor(executor.NewGoroutines())},
	} {
		t.Run(name, func(t *testing.T) {
			s := timer.New(opts...)
			defer s.Close()
			labelled := make(chan bool)
			for _, d := range []time.Duration{0, time.Millisecond} {
				left := make(chan struct{}) // made by this goroutine, which has the labels
				pprof.Do(t.Context(), pprof.Labels("request", "alice"), func(context.Context) {
					s.AfterFunc(d, func() {
						<-left
						var profile strings.Builder
						_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
						for _, g := range strings.Split(profile.String(), "\n\n") {
							if strings.Contains(g, "CallbacksHaveNoLabelsOfOthers.func1.1") {
								labelled <- strings.Contains(g, "alice")
								return
							}
						}
						labelled <- true // this goroutine must be found
					})
				})
				close(left)
				require.False(t, <-labelled, "after %v", d)
			}
		})
	}
}
