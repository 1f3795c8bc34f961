package requests

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// printTable prints the results side by side. If there are two, it adds their ratio.
func printTable(w io.Writer, c Config, results []Result, interrupted bool) error {
	var names []string
	for _, r := range results {
		names = append(names, r.Name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s requests over %v, timeouts of %v to %v, %s answered in time\n%s\n",
		cli.GroupDigits(int64(c.Count)), c.Duration, c.MinDelay, c.MaxDelay, cli.FormatPercent(c.StopRatio), cli.ThisMachine())
	b.WriteString(cli.RenderTable(names, results, tableRows(results), true))
	for _, note := range tableNotes(results, interrupted) {
		fmt.Fprintf(&b, "%s\n", note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// tableRows returns the rows of the table in three groups: outcomes, lateness and cost.
func tableRows(results []Result) [][]cli.Row[Result] {
	countRows := []cli.Row[Result]{
		cli.CountRow("started", func(r Result) int64 { return r.Started }),
		cli.CountRow("stopped in time", func(r Result) int64 { return r.Stopped }),
		cli.CountRow("fired", func(r Result) int64 { return r.Fired }),
	}
	for _, r := range results {
		if r.Interrupted {
			countRows = append(countRows, cli.CountRow("still pending", func(r Result) int64 { return r.Pending }))
			break
		}
	}
	countRows = append(countRows,
		cli.CountRow("lost", func(r Result) int64 { return r.Lost }),
		cli.CountRow("early", func(r Result) int64 { return r.Early }),
		cli.CountRow("twice or after Stop", func(r Result) int64 { return r.FiredTwiceOrAfterStop }),
	)
	return [][]cli.Row[Result]{
		countRows,
		{
			{Name: "late, p50", Value: latenessValue(func(l Lateness) time.Duration { return l.P50 }), Format: cli.FormatMillis, HasRatio: true},
			{Name: "late, p99", Value: latenessValue(func(l Lateness) time.Duration { return l.P99 }), Format: cli.FormatMillis, HasRatio: true},
			{Name: "late, max", Value: latenessValue(func(l Lateness) time.Duration { return l.Max }), Format: cli.FormatMillis, HasRatio: true},
		},
		{
			{Name: "CPU time", Format: cli.FormatSeconds, HasRatio: true, Value: func(r Result) (float64, bool) {
				if r.CPU == nil {
					return 0, false
				}
				return float64(*r.CPU), true
			}},
			{Name: "allocated in all", Format: cli.FormatMegabytes, HasRatio: true, Value: func(r Result) (float64, bool) {
				return float64(r.Allocated), true
			}},
		},
	}
}

// tableNotes returns the remarks below the table.
func tableNotes(results []Result, interrupted bool) []string {
	notes := []string{"Lateness is by the caller's clock. CPU time includes the load generator. For memory see tickless scale."}
	for _, r := range results {
		if r.MaxBehind > 100*time.Millisecond {
			notes = append(notes, fmt.Sprintf("%s: the load ran up to %s behind its plan; this machine is too busy for it.", r.Name, cli.FormatMillis(float64(r.MaxBehind))))
		}
	}
	if interrupted {
		notes = append(notes, "Interrupted: the table is incomplete.")
	}
	return notes
}

// latenessValue returns the Value function of a row. It returns no value if no timer fired.
func latenessValue(get func(Lateness) time.Duration) func(Result) (float64, bool) {
	return func(r Result) (float64, bool) { return float64(get(r.Late)), r.Fired > 0 }
}
