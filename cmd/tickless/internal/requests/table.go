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
		cli.Thousands(int64(c.Count)), c.Duration, c.MinDelay, c.MaxDelay, cli.Percent(c.StopRatio), cli.ThisMachine())
	b.WriteString(cli.RenderTable(names, results, figures(results), true))
	for _, note := range notes(results, interrupted) {
		fmt.Fprintf(&b, "%s\n", note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// figures returns the rows of the table in three groups: outcomes, lateness and cost.
func figures(results []Result) [][]cli.Figure[Result] {
	counts := []cli.Figure[Result]{
		cli.CountFigure("started", func(r Result) int64 { return r.Started }),
		cli.CountFigure("stopped in time", func(r Result) int64 { return r.Stopped }),
		cli.CountFigure("fired", func(r Result) int64 { return r.Fired }),
	}
	for _, r := range results {
		if r.Interrupted {
			counts = append(counts, cli.CountFigure("still pending", func(r Result) int64 { return r.Pending }))
			break
		}
	}
	counts = append(counts,
		cli.CountFigure("lost", func(r Result) int64 { return r.Lost }),
		cli.CountFigure("early", func(r Result) int64 { return r.Early }),
		cli.CountFigure("twice or after Stop", func(r Result) int64 { return r.Wrong }),
	)
	return [][]cli.Figure[Result]{
		counts,
		{
			{Name: "late, p50", Value: latenessValue(func(l Lateness) time.Duration { return l.P50 }), Format: cli.Millis, HasRatio: true},
			{Name: "late, p99", Value: latenessValue(func(l Lateness) time.Duration { return l.P99 }), Format: cli.Millis, HasRatio: true},
			{Name: "late, max", Value: latenessValue(func(l Lateness) time.Duration { return l.Max }), Format: cli.Millis, HasRatio: true},
		},
		{
			{Name: "CPU time", Format: cli.Seconds, HasRatio: true, Value: func(r Result) (float64, bool) {
				if r.CPU == nil {
					return 0, false
				}
				return float64(*r.CPU), true
			}},
			{Name: "allocated in all", Format: cli.Megabytes, HasRatio: true, Value: func(r Result) (float64, bool) {
				return float64(r.Allocated), true
			}},
		},
	}
}

// notes returns the remarks below the table.
func notes(results []Result, interrupted bool) []string {
	remarks := []string{"Lateness is by the caller's clock. CPU time includes the load generator. For memory see tickless scale."}
	for _, r := range results {
		if r.Behind > 100*time.Millisecond {
			remarks = append(remarks, fmt.Sprintf("%s: the load ran up to %s behind its plan; this machine is too busy for it.", r.Name, cli.Millis(float64(r.Behind))))
		}
	}
	if interrupted {
		remarks = append(remarks, "Interrupted: the table is incomplete.")
	}
	return remarks
}

func latenessValue(get func(Lateness) time.Duration) func(Result) (float64, bool) {
	return func(r Result) (float64, bool) { return float64(get(r.Late)), r.Fired > 0 }
}
