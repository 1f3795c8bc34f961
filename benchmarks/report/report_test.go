package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample is what the benchmarks print, three measurements of a few of them.
const sample = `date: 2026-01-02
commit: 0123456789ab
go: go1.26.8
procs: 2
mode: full
goos: linux
goarch: amd64
cpu: AMD EPYC
BenchmarkStartStop/impl=time/n=0/p=1-2        	  205042	       300.0 ns/op	     112 B/op	       1 allocs/op
BenchmarkStartStop/impl=time/n=0/p=1-2        	  205042	       100.0 ns/op	     112 B/op	       1 allocs/op
BenchmarkStartStop/impl=time/n=0/p=1-2        	  205042	       200.0 ns/op	     112 B/op	       1 allocs/op
BenchmarkStartStop/impl=time/n=1M/p=1-2       	  205042	      1400.0 ns/op	     112 B/op	       1 allocs/op
BenchmarkStartStop/impl=tickless/n=0/p=1-2    	  205042	        50.0 ns/op	       0 B/op	       0 allocs/op
BenchmarkStartStop/impl=tickless/n=1M/p=1-2   	  205042	        70.0 ns/op	       0 B/op	       0 allocs/op
BenchmarkExpiry/impl=time/n=1M/p=2-2          	       1	         1.5 cpu-s	         0 early	      2000.0 last-ms	         0 lost
BenchmarkExpiry/impl=tickless/n=1M/p=2-2      	       1	         0.5 cpu-s	         0 early	         2.5 last-ms	         0 lost
BenchmarkExpiry/impl=tickless/n=1M/p=2-2      	       1	         0.5 cpu-s	         0 early	         2.5 last-ms	         0 lost
BenchmarkExpiry/impl=tickless/n=1M/p=2-2      	       1	         0.5 cpu-s	         0 early	         2.5 last-ms	         0 lost
BenchmarkIdle/impl=none/n=100k-2              	       1	         0 cpu-us/s	         0 switches/s
BenchmarkIdle/impl=time/n=100k-2              	       1	       100 cpu-us/s	        12.5 switches/s
BenchmarkHeartbeats/impl=time/n=100k-2        	       1	      1044 cpu-ns/beat	       160 B/conn
BenchmarkHeartbeats/impl=tickless/n=100k-2    	       1	       334 cpu-ns/beat	        72 B/conn
BenchmarkHeartbeats/impl=noted/n=100k-2       	       1	       814 cpu-ns/beat	        56 B/conn
BenchmarkLateness/impl=time/busy=0/p=2-2      	       1	         0 early	         1.5 p99-ms
BenchmarkLateness/impl=tickless/busy=0/p=2-2  	       1	         0 early	         1.6 p99-ms
BenchmarkLateness/impl=RussellLuo/busy=0/p=2-2	       1	       300 early	         1.2 p99-ms
BenchmarkTickers/impl=time/period=1s/p=1-2    	       1	         0.993 ticks
BenchmarkTickers/impl=tickless/period=1s/p=1-2	       1	         0.989 ticks
BenchmarkTimerField/impl=time/op=reset/p=1-2  	       1	         0.0001 allocs
BenchmarkTimerField/impl=tickless/op=reset/p=1-2	       1	         0.0003 allocs
BenchmarkExpirySlack/impl=time/n=1M/p=2-2     	       1	         1.5 cpu-s
BenchmarkReset/impl=time/to=later/order=turn/n=100k/p=1-2  	  970554	       109.5 ns/op	       0 B/op	       0 allocs/op
PASS
`

const sampleCurves = `time,idle,0.000,0.1
time,idle,0.500,0.6
time,idle,1.000,9
tickless,idle,0.000,-0.1
tickless,idle,0.500,0.2
tickless,idle,1.000,0.4
time,idle,0.000,0.2
time,idle,0.500,0.5
time,idle,1.000,1.1
`

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "full.txt", sample)
	write(t, dir, "full-lateness.csv", sampleCurves)
	beginMarker, endMarker := markers("full")
	readme := write(t, dir, "README.md", "before\n"+beginMarker+"\nold tables\n"+endMarker+"\nafter\n")
	if err := report("full", dir, readme, "", "svg"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"before\n" + beginMarker, endMarker + "\nafter\n",
		"commit 0123456789ab, go1.26.8, linux/amd64, AMD EPYC, 2 procs.",
		"| start and stop, 1M pending, 1 proc (ns) | 1,400 | **70** | 0.05 |",
		"| start and stop, none other pending, 1 proc (ns) | 200 | **50** | 0.25 |", // the median
		"| the last one late by, 2 procs (ms) | 2,000 | **2.5** | 0.0013 |",
		"| early, 2 procs | 0 | 0 | |",
		"Medians of 1 to 3 runs; of 1 for tickless.\n",
		"Single runs.\n",
		"Single runs; medians of 3 for tickless.\n",
		"| reset, later, in turn, 100k pending, 1 proc (ns) | 110 |", // nobody else was measured
		"![Start and stop a timer, 1 proc](results/plots/growth-startstop-p1.svg)",
		"| context switches a second | 12.5 | 0 | |", // none is out of competition
		"| CPU time a heartbeat, ns | 1,044 | 334 | 814 | |",
		"| live heap a connection, bytes | 160 | **72** | 56 | 0.45 |",
		"| **1.5** | 1.6 | 1.2 | 1.07 |", // early is not the best at being late
		"1s, 1 proc (of 1) | 0.993 | 0.989 | |",
		"| **0** | **0** | |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the README lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "with a slack") {
		t.Error("there is a table of slack, which nobody measured")
	}
	if strings.Contains(string(text), "old tables") {
		t.Error("the README's old tables are still there")
	}
	for _, name := range []string{"startstop", "growth-startstop-p1", "expiry-late", "lateness-idle"} {
		svg, err := os.ReadFile(filepath.Join(dir, "plots", name+".svg"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, want := range []string{"<svg", "tickless", "time"} {
			if !strings.Contains(string(svg), want) {
				t.Errorf("%s.svg lacks %q", name, want)
			}
		}
	}
	if err := report("full", dir, write(t, dir, "bare.md", "no markers"), "", "svg"); err == nil {
		t.Error("a README without markers was accepted")
	}
}

// The median hides what went wrong in one run of three. So the worst run is there too, and
// who lost timers is not the best.
func TestTables_TheWorstRun(t *testing.T) {
	const runs = `mode: busy
BenchmarkBusyBurst/impl=time/n=100k/busy=4/p=2-2     	 1	  900 last-ms	 0 lost
BenchmarkBusyBurst/impl=time/n=100k/busy=4/p=2-2     	 1	  950 last-ms	 0 lost
BenchmarkBusyBurst/impl=time/n=100k/busy=4/p=2-2     	 1	  920 last-ms	 0 lost
BenchmarkBusyBurst/impl=tickless/n=100k/busy=4/p=2-2 	 1	   20 last-ms	 0 lost
BenchmarkBusyBurst/impl=tickless/n=100k/busy=4/p=2-2 	 1	  616 last-ms	 0 lost
BenchmarkBusyBurst/impl=tickless/n=100k/busy=4/p=2-2 	 1	   30 last-ms	 0 lost
BenchmarkBusyBurst/impl=other/n=100k/busy=4/p=2-2    	 1	   10 last-ms	 0 lost
BenchmarkBusyBurst/impl=other/n=100k/busy=4/p=2-2    	 1	   10 last-ms	 70 lost
BenchmarkBusyBurst/impl=other/n=100k/busy=4/p=2-2    	 1	   10 last-ms	 9 lost
`
	r, err := readResults(write(t, t.TempDir(), "busy.txt", runs))
	if err != nil {
		t.Fatal(err)
	}
	got := tables(r, false)
	for _, want := range []string{
		"(ms) | 920 (950) | **30** (616) | 10 | 0.03 | 0.24 |\n",
		"2 procs | 0 | 0 | 70 (in 2 of 3) | | |\n",
		"or lost some, in any run",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the tables lack %q:\n%s", want, got)
		}
	}
}

// Where the medians say the opposite of what the means say there is no best.
func TestTables_MeansAndMedians(t *testing.T) {
	const runs = `mode: busy
BenchmarkBusyQueue/impl=time/p=1-2     	 1	 0.3 p50-ms
BenchmarkBusyQueue/impl=time/p=1-2     	 1	 0.4 p50-ms
BenchmarkBusyQueue/impl=time/p=1-2     	 1	 0.5 p50-ms
BenchmarkBusyQueue/impl=tickless/p=1-2 	 1	 0.1 p50-ms
BenchmarkBusyQueue/impl=tickless/p=1-2 	 1	 0.2 p50-ms
BenchmarkBusyQueue/impl=tickless/p=1-2 	 1	 1.5 p50-ms
BenchmarkBusyQueue/impl=time/p=2-2     	 1	 0.3 p50-ms
BenchmarkBusyQueue/impl=time/p=2-2     	 1	 0.5 p50-ms
BenchmarkBusyQueue/impl=tickless/p=2-2 	 1	 0.1 p50-ms
BenchmarkBusyQueue/impl=tickless/p=2-2 	 1	 0.1 p50-ms
`
	r, err := readResults(write(t, t.TempDir(), "busy.txt", runs))
	if err != nil {
		t.Fatal(err)
	}
	got := tables(r, false)
	for _, want := range []string{"| ratio | means |\n", "1 proc (ms) | 0.4 | 0.2 | 0.50 | 1.50 |\n", "2 procs (ms) | 0.4 | **0.1** | 0.25 | 0.25 |\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the tables lack %q:\n%s", want, got)
		}
	}
}

// Where a control, or a difference of two, shows that runs differ by more than is measured
// there is no best; nor is there where somebody has a slack that the others have not.
func TestTables_NoContest(t *testing.T) {
	const runs = `mode: rates
BenchmarkRates/impl=time/rate=1k/p=1-2           	 1	 20 cpu-ms/s
BenchmarkRates/impl=tickless/rate=1k/p=1-2       	 1	 25 cpu-ms/s
BenchmarkRates/impl=tickless-slack/rate=1k/p=1-2 	 1	 2 cpu-ms/s
BenchmarkHeartbeats/impl=heap/n=100k-2           	 1	 800 cpu-ns/beat
BenchmarkHeartbeats/impl=tickless/n=100k-2       	 1	 700 cpu-ns/beat
BenchmarkHeartbeats/impl=noted/n=100k-2          	 1	 500 cpu-ns/beat
BenchmarkHeartbeats/impl=noted/n=100k-2          	 1	 500 cpu-ns/beat
BenchmarkHeartbeats/impl=noted/n=100k-2          	 1	 900 cpu-ns/beat
BenchmarkContextServer/impl=time/p=1-2           	 1	 100 cpu-ns
BenchmarkContextServer/impl=tickless/p=1-2       	 1	 -20 cpu-ns
BenchmarkMultiWakeup/impl=time/p=1-2             	 1	 20 s
BenchmarkMultiWakeup/impl=tickless/p=1-2         	 1	 10 s
`
	r, err := readResults(write(t, t.TempDir(), "rates.txt", runs))
	if err != nil {
		t.Fatal(err)
	}
	got := tables(r, false)
	for _, want := range []string{"| 700 | 800 | 500 | | |\n", "| 100 | -20 | | |\n", "| 20 | 10 | | |\n", "| **20** | 25 | 2 | 1.25 | |\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the tables lack %q:\n%s", want, got)
		}
	}
}

// What is measured in a hurry replaces no figure that is quoted.
func TestReport_QuickWritesItsTablesOnly(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "quick.txt", strings.Replace(sample, "mode: full", "mode: quick", 1))
	begin, end := markers("full")
	text := begin + "\nthe figures of mode full\n" + end + "\n"
	readme := write(t, dir, "README.md", text)
	if err := report("quick", dir, readme, readme, "svg"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(readme); err != nil || string(got) != text {
		t.Errorf("the README became %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "plots")); err == nil {
		t.Error("there are plots")
	}
	got, err := os.ReadFile(filepath.Join(dir, "quick.md"))
	if err != nil || !strings.Contains(string(got), "| start and stop, none other pending, 1 proc (ns) | 200 | **50** |") {
		t.Errorf("quick.md is %q, %v", got, err)
	}
}

func TestReadResults_Wrong(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty.txt": "", "broken.txt": "BenchmarkX/impl=time 1 many ns/op\n"} {
		if _, err := readResults(write(t, dir, name, text)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := readResults(filepath.Join(dir, "missing.txt")); err == nil {
		t.Error("a missing file was accepted")
	}
}

func TestReadCurves_TheLastOfSeveral(t *testing.T) {
	curves, err := readCurves(write(t, t.TempDir(), "c.csv", sampleCurves))
	if err != nil {
		t.Fatal(err)
	}
	if len(curves) != 2 || len(curves[0].ms) != 3 || curves[0].ms[2] != 1.1 {
		t.Errorf("read %v", curves)
	}
	if curves, err := readCurves(filepath.Join(t.TempDir(), "missing.csv")); err != nil || curves != nil {
		t.Errorf("a missing file gave %v, %v", curves, err)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.1234: "0.123", 0.00123: "0.001", 1.5: "1.5", 12.34: "12.3", 123.4: "123",
		1234.5: "1,234", 1234567: "1,234,567", -1.25: "-1.25", -1234: "-1,234", 100: "100", 20: "20",
	} {
		if got := number(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}
