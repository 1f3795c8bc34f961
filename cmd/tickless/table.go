package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/tickless/tickless/cmd/tickless/internal/load"
)

// absent stands for a figure that cannot be told.
const absent = "-"

// printTable prints the results side by side and, where there are two, the
// ratio of the first to the second.
func printTable(w io.Writer, c load.Config, results []load.Result, interrupted bool) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.Style().Format.Header = text.FormatDefault

	header := table.Row{""}
	for _, r := range results {
		header = append(header, r.Name)
	}
	configs := []table.ColumnConfig{{Number: 1}}
	for i := range len(results) + 1 {
		configs = append(configs, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	if len(results) == 2 {
		header = append(header, "ratio")
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(configs)

	for i, group := range rowGroups(results) {
		if i > 0 {
			t.AppendSeparator()
		}
		for _, row := range group {
			t.AppendRow(row.cells(results))
		}
	}

	var b strings.Builder
	fmt.Fprintf(&b, "\n%s requests over %v, timeouts of %v to %v, %s answered in time\n",
		thousands(int64(c.Count)), c.Duration, c.MinDelay, c.MaxDelay, percent(c.StopRatio))
	fmt.Fprintf(&b, "%s %s/%s, %d procs\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	b.WriteString(t.Render())
	b.WriteString("\n")
	for _, note := range notes(results, interrupted) {
		fmt.Fprintf(&b, "%s\n", note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// A row is one figure of every result.
type row struct {
	name string
	// value returns the figure; ok is false where it cannot be told.
	value func(load.Result) (v float64, ok bool)
	// format writes it with its unit.
	format func(float64) string
	// compare says whether a ratio of two such figures means anything.
	compare bool
}

func (r row) cells(results []load.Result) table.Row {
	cells := table.Row{r.name}
	var values []float64
	for _, res := range results {
		v, ok := r.value(res)
		if !ok {
			cells = append(cells, absent)
			continue
		}
		values = append(values, v)
		cells = append(cells, r.format(v))
	}
	if len(results) == 2 {
		ratio := ""
		if r.compare && len(values) == 2 && values[1] > 0 {
			ratio = fmt.Sprintf("%.2f", values[0]/values[1])
		}
		cells = append(cells, ratio)
	}
	return cells
}

// rowGroups returns the table's rows: what became of the timers, how late
// they were, what it cost.
func rowGroups(results []load.Result) [][]row {
	counts := []row{
		{name: "started", value: number(func(r load.Result) int64 { return r.Started }), format: whole},
		{name: "stopped in time", value: number(func(r load.Result) int64 { return r.Stopped }), format: whole},
		{name: "fired", value: number(func(r load.Result) int64 { return r.Fired }), format: whole},
	}
	for _, r := range results {
		if r.Interrupted {
			counts = append(counts, row{name: "still pending", value: number(func(r load.Result) int64 { return r.Pending }), format: whole})
			break
		}
	}
	counts = append(counts,
		row{name: "lost", value: number(func(r load.Result) int64 { return r.Lost }), format: whole},
		row{name: "early", value: number(func(r load.Result) int64 { return r.Early }), format: whole},
		row{name: "twice or after Stop", value: number(func(r load.Result) int64 { return r.Wrong }), format: whole},
	)
	return [][]row{
		counts,
		{
			{name: "late, p50", value: lateness(func(l load.Lateness) time.Duration { return l.P50 }), format: millis, compare: true},
			{name: "late, p99", value: lateness(func(l load.Lateness) time.Duration { return l.P99 }), format: millis, compare: true},
			{name: "late, max", value: lateness(func(l load.Lateness) time.Duration { return l.Max }), format: millis, compare: true},
		},
		{
			{name: "CPU time", format: seconds, compare: true, value: func(r load.Result) (float64, bool) {
				if r.CPU == nil {
					return 0, false
				}
				return float64(*r.CPU), true
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
			{name: "GC cycles in the load", value: number(func(r load.Result) int64 { return int64(r.GCCycles) }), format: whole},
			{name: heldName(results), format: millis, compare: true, value: func(r load.Result) (float64, bool) {
				if r.Held == nil {
					return 0, false
				}
				return float64(r.Held.FullGC), true
			}},
			{name: "wake-ups", format: whole, value: func(r load.Result) (float64, bool) {
				if r.Wakeups == nil {
					return 0, false
				}
				return float64(*r.Wakeups), true
			}},
			{name: "context switches", format: whole, compare: true, value: func(r load.Result) (float64, bool) {
				if r.ContextSwitches == nil {
					return 0, false
				}
				return float64(*r.ContextSwitches), true
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

func number(get func(load.Result) int64) func(load.Result) (float64, bool) {
	return func(r load.Result) (float64, bool) { return float64(get(r)), true }
}

func lateness(get func(load.Lateness) time.Duration) func(load.Result) (float64, bool) {
	return func(r load.Result) (float64, bool) { return float64(get(r.Late)), r.Fired > 0 }
}

func whole(v float64) string   { return thousands(int64(v)) }
func millis(v float64) string  { return fmt.Sprintf("%.2f ms", v/float64(time.Millisecond)) }
func seconds(v float64) string { return fmt.Sprintf("%.2f s", v/float64(time.Second)) }
func inBytes(v float64) string { return thousands(int64(math.Round(v))) + " B" }

func percent(v float64) string { return strconv.FormatFloat(v*100, 'f', -1, 64) + "%" }

// thousands writes n in groups of three digits.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}
