package scale

import (
	"fmt"
	"io"

	"github.com/tickless/tickless/cmd/internal/figures"
)

// printTable prints one implementation's results, one column for each number of timers.
func printTable(w io.Writer, runs *implRuns) {
	if len(runs.Runs) == 0 {
		return
	}
	var names []string
	for _, r := range runs.Runs {
		names = append(names, figures.GroupDigits(int64(r.Count)))
	}
	row := func(name string, format func(float64) string, get func(*result) float64) figures.Row[*result] {
		return figures.Row[*result]{Name: name, Format: format, Value: func(r *result) (float64, bool) { return get(r), true }}
	}
	perTimer := func(get func(*result) float64) func(*result) float64 {
		return func(r *result) float64 { return get(r) / float64(r.Count) }
	}
	insertTime := func(r *result) float64 { return float64(r.InsertTime) }
	heapBytes := func(r *result) float64 { return float64(r.HeapBytes) }
	totalBytes := func(r *result) float64 { return float64(r.TotalBytes) }
	groups := [][]figures.Row[*result]{
		{
			row("started in", figures.FormatSeconds, insertTime),
			row("per timer", figures.FormatNanos, perTimer(insertTime)),
		},
		{
			row("live heap", figures.FormatGibibytes, heapBytes),
			row("per timer", formatBytes, perTimer(heapBytes)),
			row("memory of the process", figures.FormatGibibytes, totalBytes),
			row("per timer", formatBytes, perTimer(totalBytes)),
			row("full GC", figures.FormatMillis, func(r *result) float64 { return float64(r.FullGCTime) }),
		},
		{
			row("start and stop, none pending", figures.FormatNanos, func(r *result) float64 { return r.EmptyStartStopNs }),
			row("start and stop, all pending", figures.FormatNanos, func(r *result) float64 { return r.StartStopNs }),
			row("churn: stop one, start one", figures.FormatNanos, func(r *result) float64 { return r.ChurnNs }),
		},
	}
	fmt.Fprintf(w, "\nPending timers: %s\n%s\n%s", runs.Name, figures.ThisMachine(), figures.RenderTable(names, runs.Runs, groups, false))
}

func formatBytes(v float64) string { return fmt.Sprintf("%.1f B", v) }
