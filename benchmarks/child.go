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

// childFile is the environment variable by which a process knows that it is a
// child, and where its figures go.
const childFile = "TICKLESS_BENCH_CHILD"

// inProcess carries out work in a process of its own, and returns the figures
// that it returned there, by unit. The process is this program, told to run the
// benchmark that calls this function and no other: so work must be all that the
// benchmark does.
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

// reportProcess reports the figures of work, carried out in a process of its
// own, each the mean of the iterations.
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
