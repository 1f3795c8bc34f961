package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/load"
)

// printTable prints the results side by side and, where there are two, the
// ratio of the first to the second.
func printTable(w io.Writer, c load.Config, results []load.Result, interrupted bool) error {
	var names []string
	for _, r := range results {
		names = append(names, r.Name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s requests over %v, timeouts of %v to %v, %s answered in time\n%s\n",
		thousands(int64(c.Count)), c.Duration, c.MinDelay, c.MaxDelay, percent(c.StopRatio), thisMachine())
	b.WriteString(renderTable(names, results, loadFigures(results), true))
	for _, note := range notes(results, interrupted) {
		fmt.Fprintf(&b, "%s\n", note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// loadFigures are the table's rows: what became of the timers, how late
// they were, what it cost.
func loadFigures(results []load.Result) [][]figure[load.Result] {
	counts := []figure[load.Result]{
		tally("started", func(r load.Result) int64 { return r.Started }),
		tally("stopped in time", func(r load.Result) int64 { return r.Stopped }),
		tally("fired", func(r load.Result) int64 { return r.Fired }),
	}
	for _, r := range results {
		if r.Interrupted {
			counts = append(counts, tally("still pending", func(r load.Result) int64 { return r.Pending }))
			break
		}
	}
	counts = append(counts,
		tally("lost", func(r load.Result) int64 { return r.Lost }),
		tally("early", func(r load.Result) int64 { return r.Early }),
		tally("twice or after Stop", func(r load.Result) int64 { return r.Wrong }),
	)
	return [][]figure[load.Result]{
		counts,
		{
			{name: "late, p50", value: lateness(func(l load.Lateness) time.Duration { return l.P50 }), format: millis, compare: true},
			{name: "late, p99", value: lateness(func(l load.Lateness) time.Duration { return l.P99 }), format: millis, compare: true},
			{name: "late, max", value: lateness(func(l load.Lateness) time.Duration { return l.Max }), format: millis, compare: true},
		},
		{
			{name: "CPU time", format: seconds, compare: true, value: func(r load.Result) (float64, bool) {
				return optional(r.CPU)
			}},
			{name: "CPU time less the load's own", format: seconds, compare: true, value: func(r load.Result) (float64, bool) {
				if r.CPU == nil || r.OwnCPU == nil || r.Interrupted {
					return 0, false
				}
				return float64(max(0, *r.CPU-*r.OwnCPU)), true
			}},
			{name: "live heap a pending timer", format: inBytes, compare: true, value: func(r load.Result) (float64, bool) {
				if r.Held == nil {
					return 0, false
				}
				return r.Held.BytesPerTimer(), true
			}},
			{name: "allocated a start", format: inBytes, compare: true, value: func(r load.Result) (float64, bool) {
				return float64(r.Allocated) / float64(r.Started), r.Started >= 1000
			}},
			tally("GC cycles in the load", func(r load.Result) int64 { return int64(r.GCCycles) }),
			{name: heldName(results), format: millis, compare: true, value: func(r load.Result) (float64, bool) {
				if r.Held == nil {
					return 0, false
				}
				return float64(r.Held.FullGC), true
			}},
			{name: "wake-ups", format: whole, value: func(r load.Result) (float64, bool) {
				return optional(r.Wakeups)
			}},
			{name: "context switches", format: whole, compare: true, value: func(r load.Result) (float64, bool) {
				return optional(r.ContextSwitches)
			}},
		},
	}
}

// heldName names the row that tells how long a collection takes.
func heldName(results []load.Result) string {
	for _, r := range results {
		if r.Held != nil {
			return "full GC, " + thousands(int64(r.Held.Timers)) + " pending"
		}
	}
	return "full GC"
}

// notes returns what the reader of the table should know besides.
func notes(results []load.Result, interrupted bool) []string {
	ns := []string{"Lateness is by the caller's clock. Context switches include the load's own."}
	for _, r := range results {
		if r.Behind > 100*time.Millisecond {
			ns = append(ns, fmt.Sprintf("%s: the load ran up to %s behind its plan; this machine is too busy for it.", r.Name, millis(float64(r.Behind))))
		}
		if r.Early > 0 {
			ns = append(ns, fmt.Sprintf("%s: the earliest fired %s before its time.", r.Name, millis(float64(r.Earliest))))
		}
	}
	if interrupted {
		ns = append(ns, "Interrupted: the table shows what was done until then.")
	}
	return ns
}

func lateness(get func(load.Lateness) time.Duration) func(load.Result) (float64, bool) {
	return func(r load.Result) (float64, bool) { return float64(get(r.Late)), r.Fired > 0 }
}
