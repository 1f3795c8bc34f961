package scale

import (
	"fmt"
	"io"
	"strings"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// printTable prints one side's results, one column for each number of timers.
func printTable(w io.Writer, runs *sideRuns) error {
	var names []string
	for _, r := range runs.Runs {
		names = append(names, cli.Thousands(int64(r.Count)))
	}
	firstRun := runs.Runs[0]
	// row returns a row of the table. Results that were skipped or failed have no value.
	row := func(name string, format func(float64) string, get func(*result) float64) cli.Figure[*result] {
		return cli.Figure[*result]{Name: name, Format: format, Value: func(r *result) (float64, bool) {
			return get(r), r.measured()
		}}
	}
	perTimer := func(get func(*result) float64) func(*result) float64 {
		return func(r *result) float64 { return get(r) / float64(r.Count) }
	}
	insertTime := func(r *result) float64 { return float64(r.Insert) }
	heapBytes := func(r *result) float64 { return float64(r.HeapBytes) }
	totalBytes := func(r *result) float64 { return float64(r.TotalBytes) }
	groups := [][]cli.Figure[*result]{
		{
			row("started in", cli.Seconds, insertTime),
			row("per timer", cli.Nanos, perTimer(insertTime)),
		},
		{
			row("live heap", cli.Gibibytes, heapBytes),
			row("per timer", oneDecimalBytes, perTimer(heapBytes)),
			row("memory of the process", cli.Gibibytes, totalBytes),
			row("per timer", oneDecimalBytes, perTimer(totalBytes)),
			row("full GC", cli.Millis, func(r *result) float64 { return float64(r.FullGC) }),
		},
		{
			row("start and stop, none pending", cli.Nanos, func(r *result) float64 { return r.EmptyStartStop }),
			row("start and stop, all pending", cli.Nanos, func(r *result) float64 { return r.StartStop }),
			row("all pending / none pending", twoDecimals, func(r *result) float64 { return r.StartStop / r.EmptyStartStop }),
			row("churn: stop one, start one", cli.Nanos, func(r *result) float64 { return r.Churn }),
		},
	}
	if firstRun.measured() && len(runs.Runs) > 1 {
		groups[2] = append(groups[2], row("churn / churn of the first column", twoDecimals,
			func(r *result) float64 { return r.Churn / firstRun.Churn }))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nPending timers: %s\n%s\n", runs.Name, cli.ThisMachine())
	b.WriteString(cli.RenderTable(names, runs.Runs, groups, false))
	for _, r := range runs.Runs {
		if r.Skipped != "" {
			fmt.Fprintf(&b, "Skipped: %s.\n", r.Skipped)
		}
		if r.Failed != "" {
			fmt.Fprintf(&b, "FAILED: %s.\n", r.Failed)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func twoDecimals(v float64) string     { return fmt.Sprintf("%.2f", v) }
func oneDecimalBytes(v float64) string { return fmt.Sprintf("%.1f B", v) }
