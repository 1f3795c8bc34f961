package executor_test

import (
	"context"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
)

// If a callback sets labels and ends its goroutine, the goroutine that replaces it does
// not have those labels.
func TestPool_LabelsOfACallbackEndWithIt(t *testing.T) {
	ends := func() {
		pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("tenant", "acme")))
		runtime.Goexit()
	}
	for name, run := range map[string]func(p *executor.Pool, fs []func()){
		"worker": func(p *executor.Pool, fs []func()) {
			_, err := p.SubmitBatch(fs)
			require.NoError(t, err)
		},
		"share": func(p *executor.Pool, fs []func()) {
			go shared(t, p, fs...).Run()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := executor.NewPool(executor.WithWorkers(1), executor.WithLabels(pprof.Labels("scheduler", "ours")))
				begun, release := false, make(chan struct{})
				run(p, []func(){ends, func() { begun = true; <-release }})
				synctest.Wait() // the old goroutine has ended
				require.True(t, begun)
				var b strings.Builder
				require.NoError(t, pprof.Lookup("goroutine").WriteTo(&b, 1))
				close(release)
				require.NoError(t, p.Shutdown(t.Context()))
				require.NotContains(t, b.String(), "acme")
				require.Contains(t, b.String(), `"scheduler":"ours"`)
			})
		})
	}
}
