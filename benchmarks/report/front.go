package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// A headline is a row of the table in the repository's README. The table has what
// decides whether to use this module, and that includes what package time does
// better.
type headline struct {
	mode  string
	key   key
	title string // with the unit
}

var headlines = []headline{
	{"rates", key{"StartStop", "n=1M/p=1", "ns/op"}, "start and stop a timer, 1M others pending, 1 proc (ns)"},
	{"rates", key{"Churn", "n=100k/p=2", "ns/op"}, "stop a random one of 100k and start another, 2 procs (ns)"},
	{"rates", key{"Churn", "n=1M/p=2", "ns/op"}, "stop a random one of 1M and start another, 2 procs (ns)"},
	{"rates", key{"StopReset", "delay=random/n=300k/p=1", "ns/pair"}, "stop a random one of 300k Timers and reset it, 1 proc (ns)"},
	{"rates", key{"StopReset", "delay=random/n=300k/p=2", "ns/pair"}, "stop a random one of 300k Timers and reset it, 2 procs (ns)"},
	{"rates", key{"Held", "n=1M/p=1", "B/timer"}, "live heap a pending timer, 1 proc (bytes)"},
	{"rates", key{"Held", "n=1M/p=1", "gc-ms"}, "a full garbage collection, 1M pending, 1 proc (ms)"},
	{"busy", key{"BusyBurst", "n=100k/busy=4/p=2", "last-ms"}, "100k due at once, whose callbacks do nothing, beside 4 computing goroutines, 2 procs: the last one late by (ms)"},
	{"busy", key{"BusyQueue", "p=2", "p50-ms"}, "behind 3,000 callbacks that compute for 2 ms, 2 procs: a timer late by, at p50 (ms)"},
	{"rates", key{"Rates", "rate=100k/p=2", "cpu-ms/s"}, "CPU time a second while 100,000 a second fire, 2 procs (ms)"},
	{"rates", key{"Reset", "to=earlier/order=random/n=1M/p=1", "ns/op"}, "reset a random one of 1M to earlier, 1 proc (ns)"},
	{"rates", key{"Reset", "to=earlier/order=turn/n=1M/p=1", "ns/op"}, "reset one after another of 1M to earlier, 1 proc (ns)"},
	{"rates", key{"Rates", "rate=10k/p=1", "cpu-ms/s"}, "CPU time a second while 10,000 a second fire, 1 proc (ms)"},
	{"rates", key{"Rates", "rate=10k/p=2", "cpu-ms/s"}, "the same, 2 procs (ms)"},
	{"rates", key{"Rates", "rate=1k/p=1", "cpu-ms/s"}, "CPU time a second while 1,000 a second fire, 1 proc (ms)"},
	{"rates", key{"Rates", "rate=1k/p=2", "cpu-ms/s"}, "the same, 2 procs (ms)"},
	{"rates", key{"Rates", "rate=10/p=1", "cpu-ms/s"}, "CPU time a second while 10 a second fire, 1 proc (ms)"},
}

// front returns the table of headlines from the results in dir.
func front(dir string) (string, error) {
	var b strings.Builder
	read := make(map[string]*results)
	b.WriteString("| lower is better | `time` | tickless | ratio | means | workload |\n|---|---:|---:|---:|---:|---|\n")
	for _, h := range headlines {
		r := read[h.mode]
		if r == nil {
			var err error
			if r, err = readResults(filepath.Join(dir, h.mode+".txt")); err != nil {
				return "", err
			}
			read[h.mode] = r
		}
		std, ok1 := r.median(h.key, "time")
		ours, ok2 := r.median(h.key, "tickless")
		if !ok1 || !ok2 {
			return "", fmt.Errorf("%s.txt has no figures for %v", h.mode, h.key)
		}
		w := row{key: h.key}
		undecided := w.undecided(r)
		fmt.Fprintf(&b, "| %s | %s%s | %s%s |%s %s |\n", h.title, emphasize(std, std < ours && !undecided), w.beside(r, "time"),
			emphasize(ours, ours < std && !undecided), w.beside(r, "tickless"), w.ratioCells(r), h.key.workload)
	}
	rates, busy := machine(read["rates"]), machine(read["busy"])
	fmt.Fprintf(&b, "\nMedians (in brackets the worst of all runs), and the ratio of the means, of rates.txt and busy.txt in benchmarks/results, which name their commits: %s", rates)
	if busy != rates {
		fmt.Fprintf(&b, "; busy.txt on another day: %s", busy)
	}
	b.WriteString(".\n")
	return b.String(), nil
}

func emphasize(v float64, best bool) string {
	if best {
		return "**" + number(v) + "**"
	}
	return number(v)
}
