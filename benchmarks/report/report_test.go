package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const raw = `date: 2026-01-02
commit: abc
go: go1.26
mode: busy
goos: linux
cpu: A Processor
BenchmarkStartStop/impl=time/n=1M/p=1-8     1000   200 ns/op   112 B/op
BenchmarkStartStop/impl=time/n=1M/p=1-8     1000   300 ns/op   112 B/op
BenchmarkStartStop/impl=tickless/n=1M/p=1-8 1000    50 ns/op     0 B/op     0 allocs/op
BenchmarkStartStop/impl=time/n=1M/p=2-8     1000   100 ns/op   113 B/op
BenchmarkExpiry/impl=time/n=1M-8        1 0 ns/op 5 last-ms 0 early
BenchmarkExpiry/impl=hasty/n=1M-8       1 0 ns/op 1 last-ms 7 early
BenchmarkExpiry/impl=hasty/n=1M-8       1 0 ns/op 1 last-ms 3 early
BenchmarkExpiry/impl=hasty/n=1M-8       1 0 ns/op 1 last-ms 0 early
BenchmarkExpiry/impl=tickless/n=1M-8    1 0 ns/op 2 last-ms 0 early
BenchmarkBusyBurst/impl=time/n=100k/busy=4/p=2     1 0 ns/op 257 last-ms 0 lost
BenchmarkBusyBurst/impl=tickless/n=100k/busy=4/p=2 1 0 ns/op 15 last-ms 0 lost
BenchmarkSweep/impl=time/load=a-8     1 3 cpu-ms/s  9 max-ms 1.5 p50-ms
BenchmarkSweep/impl=time/load=b-8     1 4 cpu-ms/s  8 max-ms 1.5 p50-ms
BenchmarkSweep/impl=tickless/load=a-8 1 2 cpu-ms/s 10 max-ms 1.5 p50-ms
BenchmarkSweep/impl=tickless/load=b-8 1 5 cpu-ms/s  7 max-ms 1.5 p50-ms
PASS
`

func TestReport(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "busy.txt"), []byte(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := report("busy", dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "busy.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Commit abc, go1.26, A Processor",
		"| | time | tickless |\n",
		"| n=1M/p=1 ns/op | 250 | **50** |\n",
		"| n=1M/p=1 B/op | 112 | **0** |\n",
		"| n=1M last-ms | 5 | **2** | 1 |\n", // hasty is early, so it is not marked as the best
		"| n=1M early | 0 | 0 | 3, worst 7 |\n",
		"| | cpu-ms/s: time | tickless | max-ms: time | tickless |\n|---|---:|---:|---:|---:|\n| load=a | 3 | **2** | **9** | 10 |\n| load=b |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "lost") && strings.Contains(string(text), "lost |") {
		t.Errorf("the table has a row for lost timers, want none: no timer was lost\n%s", text)
	}
	if strings.Contains(string(text), "113") || strings.Contains(string(text), "allocs") {
		t.Errorf("the table shows allocations twice:\n%s", text)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "burst.svg"))
	if err != nil || !strings.Contains(string(svg), ">257</text>") {
		t.Error("the plot lacks the figure 257", err, string(svg))
	}
}

func TestParse_RefusesInvalidOutput(t *testing.T) {
	for _, text := range []string{"", "PASS\n", "BenchmarkA/impl=time 1 x ns/op\n", "BenchmarkA/impl=time 1 2 ns/op 3\n"} {
		if _, err := parseResults(text); err == nil {
			t.Errorf("parse accepts %q", text)
		}
	}
}

func TestFormatNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0123: "0.0123", 1.5: "1.5", 14.25: "14.2", 257: "257", 1234567: "1,234,567", -9.2: "-9.2"} {
		if got := formatNumber(v); got != want {
			t.Errorf("%v is formatted as %s, want %s", v, got, want)
		}
	}
}
