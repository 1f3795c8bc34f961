package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const redisSample = `commit: 0123456789ab
go: go1.26.8
mode: redis
goos: linux
goarch: amd64
cpu: AMD EPYC   
BenchmarkSchedule/by=one/conns=1/impl=tickless-2     	       1	        12 script-us/task	        30 server-us/task	     20000 tasks/s
BenchmarkSchedule/by=one/conns=1/impl=asynq-tuned-2  	       1	        10 script-us/task	        24 server-us/task	     25000 tasks/s
BenchmarkLateness/impl=tickless-2                    	       1	         0 early-%	         5.5 max-ms	         1.0 p50-ms	         4.0 p99-ms
BenchmarkLateness/impl=asynq-tuned-2                 	       1	        90 early-%	       200.0 max-ms	      -300.0 p50-ms	       100.0 p99-ms
BenchmarkCluster/what=one/impl=tickless-2            	       1	      9000 tasks/s
PASS
`

// More tasks a second are better, less of everything else is, and what is early is not.
func TestReport_OfRedis(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "redis.txt", redisSample)
	begin, end := markers(redis)
	page := write(t, dir, "README.md", begin+"\n"+end+"\n")
	if err := report(redis, dir, page, "", "svg"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"linux/amd64, AMD EPYC.\n",
		"`ratio` is `tickless` to `asynq-tuned`",
		"| one caller (tasks/s) | 20,000 | **25,000** | 0.80 |",
		"| one caller, CPU of the server (µs a task) | 30 | **24** | 1.25 |",
		"| late at p50 (ms) | 1 | -300 | |",
		"| late at p99 (ms) | **4** | 100 | 0.04 |",
		"| early (%) | 0 | 90 | |",
		"| one caller (tasks/s) | 9,000 | |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "plots")); err == nil {
		t.Error("there are plots of workloads that have the same names")
	}
}
