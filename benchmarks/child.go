package benchmarks

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// childFile is the environment variable that makes a process a child. It names the file
// for the child's figures.
const childFile = "TICKLESS_BENCH_CHILD"

// inProcess runs work in a child process and returns the figures that work returned
// there, by unit. The child is this program, and runs only the benchmark that calls
// inProcess: so that benchmark must do nothing but work.
func inProcess(b *testing.B, work func() map[string]float64) map[string]float64 {
	if path := os.Getenv(childFile); path != "" {
		figures := work()
		text, err := json.Marshal(figures)
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
		return figures
	}
	path := filepath.Join(b.TempDir(), "figures.json")
	pattern := strings.Split(b.Name(), "/")
	for i, part := range pattern {
		pattern[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	args := []string{"-test.run=^$", "-test.benchtime=1x", "-test.bench=" + strings.Join(pattern, "/")}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childFile+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	var figures map[string]float64
	if err := json.Unmarshal(text, &figures); err != nil {
		b.Fatal(err)
	}
	return figures
}

// reportProcess runs work in a child process and reports its figures, each as the mean
// over the iterations.
func reportProcess(b *testing.B, work func() map[string]float64) {
	sums := map[string]float64{}
	for b.Loop() {
		for unit, v := range inProcess(b, work) {
			sums[unit] += v
		}
	}
	b.ReportMetric(0, "ns/op") // says nothing: hidden
	for unit, sum := range sums {
		b.ReportMetric(sum/float64(b.N), unit)
	}
}
