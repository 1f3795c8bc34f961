package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the benchmarks print in MODE versions: for each line of the plan a process for
// each version of Go.
const sampleVersions = `date: 2026-01-02
commit: 0123456789ab
versions: go1.25.1 go1.26.8
procs: 2
mode: versions
go: go1.25.1
goos: linux
goarch: amd64
cpu: AMD EPYC
BenchmarkStartStop/impl=time/n=1M/p=1-2         	  205042	       300.0 ns/op	     112 B/op	       1 allocs/op
BenchmarkStartStop/impl=time/n=1M/p=1-2         	  205042	       100.0 ns/op	     112 B/op	       1 allocs/op
BenchmarkStartStop/impl=time/n=1M/p=1-2         	  205042	       200.0 ns/op	     112 B/op	       1 allocs/op
PASS
go: go1.26.8
goos: linux
goarch: amd64
cpu: AMD EPYC
BenchmarkStartStop/impl=time/n=1M/p=1-2         	  205042	       100.0 ns/op	     112 B/op	       1 allocs/op
PASS
go: go1.25.1
goos: linux
goarch: amd64
cpu: AMD EPYC
BenchmarkStartStop/impl=tickless/n=1M/p=1-2     	  205042	        50.0 ns/op	       0 B/op	       0 allocs/op
PASS
go: go1.26.8
goos: linux
goarch: amd64
cpu: AMD EPYC
BenchmarkStartStop/impl=tickless/n=1M/p=1-2     	  205042	       120.0 ns/op	       0 B/op	       0 allocs/op
BenchmarkStopReset/impl=tickless/delay=same/n=300k/p=1-2 	  1	        70.0 ns/pair
BenchmarkRates/impl=tickless/rate=1k/p=2-2      	  1	        20.0 cpu-ms/s	  0 early
BenchmarkRates/impl=time/rate=1k/p=2-2          	  1	        10.0 cpu-ms/s	  1 early
PASS
`

func TestReport_Versions(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "versions.txt", sampleVersions)
	begin, end := markers("versions")
	readme := write(t, dir, "README.md", "before\n"+begin+"\nold tables\n"+end+"\nafter\n")
	if err := report("versions", dir, readme, "", "svg"); err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{readme, filepath.Join(dir, "versions.md")} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"commit 0123456789ab, go1.25.1, go1.26.8, linux/amd64, AMD EPYC, 2 procs.",
			"| | time@1.25.1 | tickless@1.25.1 | ratio@1.25.1 | means@1.25.1 | time@1.26.8 | tickless@1.26.8 | ratio@1.26.8 | means@1.26.8 |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
			// The median of its own version, and the better of the two is bold.
			"| start and stop, 1M pending, 1 proc (ns) | 200 | **50** | 0.25 | | **100** | 120 | 1.20 | |\n",
			"| a Stop and a Reset, same delay, 1 proc (ns) | | | | | | 70 | | |\n", // nothing to compare with
			"| CPU time a second, 1k timers, 2 procs (ms) | | | | | **10** | 20 | 2.00 | |\n",
			"| early, 1k timers, 2 procs | | | | | 1 | 0 | | |\n",
			"Medians of 1 to 3 runs.\n",
			"Single runs.\n",
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %q:\n%s", filepath.Base(page), want, text)
			}
		}
		for _, no := range []string{"old tables", "Memory and garbage", "the best of a row"} {
			if strings.Contains(string(text), no) {
				t.Errorf("%s has %q:\n%s", filepath.Base(page), no, text)
			}
		}
	}
}

// With one version of Go, as when COMPAT is empty, the tables are those of the other
// modes.
func TestReport_OneVersion(t *testing.T) {
	dir := t.TempDir()
	first, _, _ := strings.Cut(sampleVersions, "go: go1.26.8\n")
	r, err := readResults(write(t, dir, "versions.txt", first))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tables(r, true), "| start and stop, 1M pending, 1 proc (ns) | 200 |"; !strings.Contains(got, want) || r.versions != nil {
		t.Errorf("%d versions, and the tables lack %q:\n%s", len(r.versions), want, got)
	}
}
