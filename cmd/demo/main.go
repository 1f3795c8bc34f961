// Demo runs a load of request timeouts on package timer, then the same load on
// time.AfterFunc. It prints their cost and lateness side by side, and a verdict.
//
// Requests arrive at a steady rate. Each starts a timer with its timeout. Most are
// answered in time, which stops the timer; the others time out, which runs the timer's
// callback. Delays and answers are random, but the same for both.
//
// Usage:
//
//	go run ./cmd/demo                               a million requests over 3 seconds
//	go run ./cmd/demo -count 100k -duration 1s      a small load
//
// The exit code is 1 if a timer was lost, early or fired twice, and 2 for wrong arguments.
//
// The load generator allocates nothing during a run. Its CPU time is part of both figures.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tickless/tickless/cmd/internal/figures"
)

const (
	exitFailed = 1
	exitUsage  = 2
	// maxCount is the largest number of requests. 10 million need about 1.5 GB.
	maxCount    = 10_000_000
	maxDuration = time.Hour
)

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// execute runs the program and returns its exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	count, duration := 1_000_000, 3*time.Second
	set := flag.NewFlagSet("demo", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.Var((*figures.CountFlag)(&count), "count", "`number` of requests, such as 10k or 1M")
	set.DurationVar(&duration, "duration", duration, "time over which the requests arrive")
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil: // Parse has printed it
		return exitUsage
	case set.NArg() > 0:
		fmt.Fprintf(stderr, "demo: it takes no arguments, got %q\n", set.Arg(0))
		return exitUsage
	case count < 1 || count > maxCount || duration <= 0 || duration > maxDuration:
		fmt.Fprintf(stderr, "demo: the count must be from 1 to %d and the duration at most %v, got %d and %v\n", maxCount, maxDuration, count, duration)
		return exitUsage
	}
	if err := compare(count, duration, backends, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "demo: %v\n", err)
		return exitFailed
	}
	return 0
}

// compare runs the load on Tickless and then on time.AfterFunc, and prints the results.
func compare(count int, duration time.Duration, backends []backend, stdout, stderr io.Writer) error {
	var results []result
	for _, b := range backends {
		fmt.Fprintf(stderr, "%s: %s requests over %v\n", b.name, figures.GroupDigits(int64(count)), duration)
		r, err := newLoad(count, duration).run(b)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		results = append(results, r)
	}
	if err := printTable(stdout, count, duration, results); err != nil {
		return err
	}
	if ours := results[0]; ours.faults() > 0 {
		return errors.New("FAILED: Tickless broke its promises")
	}
	return nil
}

// printTable prints the results side by side, and the verdict.
func printTable(w io.Writer, count int, duration time.Duration, results []result) error {
	figure := func(name string, format func(float64) string, get func(r result) time.Duration) figures.Row[result] {
		return figures.Row[result]{Name: name, Format: format, HasRatio: true, Value: func(r result) (float64, bool) {
			return float64(get(r)), get(r) != 0
		}}
	}
	groups := [][]figures.Row[result]{
		{
			figures.CountRow("stopped in time", func(r result) int64 { return r.stopped }),
			figures.CountRow("fired", func(r result) int64 { return r.fired }),
			figures.CountRow("lost", func(r result) int64 { return r.lost }),
			figures.CountRow("early", func(r result) int64 { return r.early }),
			figures.CountRow("twice or after Stop", func(r result) int64 { return r.wrong }),
		},
		{
			figure("late, p50", figures.FormatMillis, func(r result) time.Duration { return r.late(0.5) }),
			figure("late, p99", figures.FormatMillis, func(r result) time.Duration { return r.late(0.99) }),
			figure("late, max", figures.FormatMillis, func(r result) time.Duration { return r.late(1) }),
		},
		{
			figure("CPU time", figures.FormatSeconds, func(r result) time.Duration { return r.cpu }),
			{Name: "allocated in all", Format: figures.FormatMegabytes, HasRatio: true, Value: func(r result) (float64, bool) { return float64(r.allocated), true }},
		},
	}
	var names []string
	for _, r := range results {
		names = append(names, r.name)
	}
	_, err := fmt.Fprintf(w, "\n%s requests over %v, timeouts of %v to %v, %.0f%% answered in time\n%s\n%sLateness is by the caller's clock. CPU time includes the load generator.\n",
		figures.GroupDigits(int64(count)), duration, minDelay, maxDelay, 100*answered, figures.ThisMachine(), figures.RenderTable(names, results, groups, true))
	for _, r := range results {
		if r.behind > 100*time.Millisecond {
			fmt.Fprintf(w, "%s: the load ran up to %s behind its plan; this machine is too busy for it.\n", r.name, figures.FormatMillis(float64(r.behind)))
		}
	}
	fmt.Fprintf(w, "\n%s\n", verdict(results[0], results[1]))
	return err
}

// verdict says in one sentence what the run on ours shows, beside the run on std.
func verdict(ours, std result) string {
	if ours.faults() > 0 {
		return "Tickless broke its promises in this run: please report it."
	}
	used := ""
	if ours.cpu > 0 && std.cpu > 0 {
		used = fmt.Sprintf(" it used %.0f%% of time.AfterFunc's CPU time, and", 100*float64(ours.cpu)/float64(std.cpu))
	}
	late := func(r result) string { return figures.FormatMillis(float64(r.late(0.99))) }
	return fmt.Sprintf("No timer of Tickless was lost or early;%s 99%% of its timeouts fired at most %s late (time.AfterFunc: %s).", used, late(ours), late(std))
}
