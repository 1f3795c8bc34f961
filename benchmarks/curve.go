package benchmarks

import (
	"fmt"
	"os"
	"testing"
)

// curveSteps is how many points of a cumulative curve are saved.
const curveSteps = 200

// saveCurve appends the cumulative curve of values to the file that is named by
// TICKLESS_BENCH_CURVES, if it is set: a line implementation,load,share,value
// for each step, of which the last is the maximum.
func saveCurve(b *testing.B, impl, load string, values []float64) {
	path := os.Getenv("TICKLESS_BENCH_CURVES")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		b.Fatal(err)
	}
	for i := range curveSteps + 1 {
		share := float64(i) / curveSteps
		fmt.Fprintf(f, "%s,%s,%.3f,%.4f\n", impl, load, share, quantile(values, share))
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}
