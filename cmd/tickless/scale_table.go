package main

import (
	"fmt"
	"io"
	"strings"
)

// printScaleTable prints one side's results, a column a number of timers.
func printScaleTable(w io.Writer, runs *scaleRuns) error {
	var names []string
	for _, r := range runs.Runs {
		names = append(names, thousands(int64(r.Count)))
	}
	first := runs.Runs[0]
	// A figure is one of those that were measured.
	row := func(name string, format func(float64) string, get func(*scaleResult) float64) figure[*scaleResult] {
		return figure[*scaleResult]{name: name, format: format, value: func(r *scaleResult) (float64, bool) {
			return get(r), r.Skipped == ""
		}}
	}
	a := func(get func(*scaleResult) float64) func(*scaleResult) float64 {
		return func(r *scaleResult) float64 { return get(r) / float64(r.Count) }
	}
	insert := func(r *scaleResult) float64 { return float64(r.Insert) }
	heap := func(r *scaleResult) float64 { return float64(r.HeapBytes) }
	total := func(r *scaleResult) float64 { return float64(r.TotalBytes) }
	groups := [][]figure[*scaleResult]{
		{
			row("started in", seconds, insert),
			row("a timer", nanos, a(insert)),
		},
		{
			row("live heap", gibibytes, heap),
			row("a timer", tenths, a(heap)),
			row("memory of the process", gibibytes, total),
			row("a timer", tenths, a(total)),
			row("full GC", millis, func(r *scaleResult) float64 { return float64(r.FullGC) }),
		},
		{
			row("start and stop, none pending", nanos, func(r *scaleResult) float64 { return r.EmptyStartStop }),
			row("start and stop, all pending", nanos, func(r *scaleResult) float64 { return r.StartStop }),
			row("times as much", factor, func(r *scaleResult) float64 { return r.StartStop / r.EmptyStartStop }),
			row("churn", nanos, func(r *scaleResult) float64 { return r.Churn }),
		},
	}
	if first.Skipped == "" && len(runs.Runs) > 1 {
		groups[2] = append(groups[2], row("times that of the first column", factor,
			func(r *scaleResult) float64 { return r.Churn / first.Churn }))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nPending timers: %s\n%s\n", runs.Name, thisMachine())
	b.WriteString(renderTable(names, runs.Runs, groups, false))
	for _, r := range runs.Runs {
		if r.Skipped != "" {
			fmt.Fprintf(&b, "Skipped: %s.\n", r.Skipped)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func factor(v float64) string    { return fmt.Sprintf("%.2f", v) }
func tenths(v float64) string    { return fmt.Sprintf("%.1f B", v) }
func gibibytes(v float64) string { return fmt.Sprintf("%.2f GiB", v/(1<<30)) }
