package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tickless/tickless/cmd/internal/figures"
)

// printTable prints the results side by side. If there are two, it adds their ratio.
func printTable(w io.Writer, c Config, results []Result, interrupted bool) error {
	var names []string
	for _, r := range results {
		names = append(names, r.Name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s requests over %v, timeouts of %v to %v, %s answered in time\n%s\n",
		figures.GroupDigits(int64(c.Count)), c.Duration, c.MinDelay, c.MaxDelay, figures.FormatPercent(c.StopRatio), figures.ThisMachine())
	b.WriteString(figures.RenderTable(names, results, tableRows(results), true))
	for _, note := range tableNotes(results, interrupted) {
		fmt.Fprintf(&b, "%s\n", note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// tableRows returns the rows of the table in three groups: outcomes, lateness and cost.
func tableRows(results []Result) [][]figures.Row[Result] {
	countRows := []figures.Row[Result]{
		figures.CountRow("started", func(r Result) int64 { return r.Started }),
		figures.CountRow("stopped in time", func(r Result) int64 { return r.Stopped }),
		figures.CountRow("fired", func(r Result) int64 { return r.Fired }),
	}
	for _, r := range results {
		if r.Interrupted {
			countRows = append(countRows, figures.CountRow("still pending", func(r Result) int64 { return r.Pending }))
			break
		}
	}
	countRows = append(countRows,
		figures.CountRow("lost", func(r Result) int64 { return r.Lost }),
		figures.CountRow("early", func(r Result) int64 { return r.Early }),
		figures.CountRow("twice or after Stop", func(r Result) int64 { return r.FiredTwiceOrAfterStop }),
	)
	return [][]figures.Row[Result]{
		countRows,
		{
			{Name: "late, p50", Value: latenessValue(func(l Lateness) time.Duration { return l.P50 }), Format: figures.FormatMillis, HasRatio: true},
			{Name: "late, p99", Value: latenessValue(func(l Lateness) time.Duration { return l.P99 }), Format: figures.FormatMillis, HasRatio: true},
			{Name: "late, max", Value: latenessValue(func(l Lateness) time.Duration { return l.Max }), Format: figures.FormatMillis, HasRatio: true},
		},
		{
			{Name: "CPU time", Format: figures.FormatSeconds, HasRatio: true, Value: func(r Result) (float64, bool) {
				if r.CPU == nil {
					return 0, false
				}
				return float64(*r.CPU), true
			}},
			{Name: "allocated in all", Format: figures.FormatMegabytes, HasRatio: true, Value: func(r Result) (float64, bool) {
				return float64(r.Allocated), true
			}},
		},
	}
}

// tableNotes returns the remarks below the table. The last one is the verdict.
func tableNotes(results []Result, interrupted bool) []string {
	notes := []string{"Lateness is by the caller's clock. CPU time includes the load generator."}
	for _, r := range results {
		if r.MaxBehind > 100*time.Millisecond {
			notes = append(notes, fmt.Sprintf("%s: the load ran up to %s behind its plan; this machine is too busy for it.", r.Name, figures.FormatMillis(float64(r.MaxBehind))))
		}
	}
	if interrupted {
		return append(notes, "Interrupted: the table is incomplete.")
	}
	return append(notes, "", verdict(results[0], results[1]))
}

// verdict says in one sentence what the run on ours shows, beside the run on std.
func verdict(ours, std Result) string {
	if err := ours.faultsError(); err != nil {
		return "Tickless broke its promises in this run: please report it."
	}
	used := ""
	if ours.CPU != nil && *std.CPU > 0 {
		used = fmt.Sprintf(" it used %.0f%% of time.AfterFunc's CPU time, and", 100*float64(*ours.CPU)/float64(*std.CPU))
	}
	late := func(r Result) string { return figures.FormatMillis(float64(r.Late.P99)) }
	return fmt.Sprintf("No timer of Tickless was lost or early;%s 99%% of its timeouts fired at most %s late (time.AfterFunc: %s).", used, late(ours), late(std))
}

// latenessValue returns the Value function of a row. It returns no value if no timer fired.
func latenessValue(get func(Lateness) time.Duration) func(Result) (float64, bool) {
	return func(r Result) (float64, bool) { return float64(get(r.Late)), r.Fired > 0 }
}
