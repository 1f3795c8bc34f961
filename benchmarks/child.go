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

// figuresFileEnvVar is an environment variable of child processes. It names the file to
// which the child writes its figures.
const figuresFileEnvVar = "TICKLESS_BENCH_CHILD"

// runInChild runs the calling benchmark in a child process, and returns the figures of work
// by unit. Only the child calls work.
func runInChild(b *testing.B, work func() map[string]float64) map[string]float64 {
	if path := os.Getenv(figuresFileEnvVar); path != "" { // this is the child
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
	figuresPath := filepath.Join(b.TempDir(), "figures.json")
	namePatterns := strings.Split(b.Name(), "/")
	for i, part := range namePatterns {
		namePatterns[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	args := []string{"-test.run=^$", "-test.benchtime=1x", "-test.bench=" + strings.Join(namePatterns, "/")}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), figuresFileEnvVar+"="+figuresPath)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(figuresPath)
	if err != nil {
		b.Fatal(err)
	}
	var figures map[string]float64
	if err := json.Unmarshal(text, &figures); err != nil {
		b.Fatal(err)
	}
	return figures
}

// reportChildFigures runs work b.N times, each time in a child process, and reports the
// mean of each figure.
func reportChildFigures(b *testing.B, work func() map[string]float64) {
	figureSums := map[string]float64{}
	for b.Loop() {
		for unit, v := range runInChild(b, work) {
			figureSums[unit] += v
		}
	}
	b.ReportMetric(0, "ns/op") // 0 hides it: the time of a child process says nothing
	for unit, sum := range figureSums {
		b.ReportMetric(sum/float64(b.N), unit)
	}
}
