package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/tickless/tickless/cmd/tickless/internal/load"
)

// An idleTally is what one side made of a plan, in the form in which a child
// process passes it on.
type idleTally struct {
	Name        string
	Interrupted bool
	Conns       int
	Silent      int // that were to fall silent, and had done so
	Heartbeats  int64
	Evicted     int64 // of those that fell silent
	Early       int64 // before their timeout
	Missed      int64 // fell silent, and are still there
	Twice       int64
	Unpunctual  int64 // evicted although they did not fall silent: a heartbeat came too late
	Behind      time.Duration
	Elapsed     time.Duration
	CPU         *time.Duration // user and system, of the heartbeats alone; the load's own included
	OwnCPU      *time.Duration // of the load alone, where that was measured
	Memory      int64          // heap and stacks with all connections, less those before
	Late        []time.Duration
}

// add adds the tally of another process.
func (t *idleTally) add(o idleTally) {
	t.Name = o.Name
	t.Interrupted = t.Interrupted || o.Interrupted
	t.Conns += o.Conns
	t.Silent += o.Silent
	t.Heartbeats += o.Heartbeats
	t.Evicted += o.Evicted
	t.Early += o.Early
	t.Missed += o.Missed
	t.Twice += o.Twice
	t.Unpunctual += o.Unpunctual
	t.Behind = max(t.Behind, o.Behind)
	t.Elapsed = max(t.Elapsed, o.Elapsed)
	if o.CPU != nil {
		if t.CPU == nil {
			t.CPU = new(time.Duration)
		}
		*t.CPU += *o.CPU
	}
	t.Memory += o.Memory
	t.Late = append(t.Late, o.Late...)
}

func (t *idleTally) late() load.Lateness {
	if len(t.Late) == 0 {
		return load.Lateness{}
	}
	slices.SortFunc(t.Late, cmp.Compare[time.Duration])
	at := func(q float64) time.Duration { return t.Late[int(q*float64(len(t.Late)-1))] }
	return load.Lateness{P50: at(0.5), P99: at(0.99), P999: at(0.999), Max: at(1)}
}

// less returns the CPU time less the load's own, if both are known.
func (t *idleTally) less() (time.Duration, bool) {
	if t.CPU == nil || t.OwnCPU == nil || t.Interrupted {
		return 0, false
	}
	return max(0, *t.CPU-*t.OwnCPU), true
}

// An idleShown is a tally as --json prints it: durations in milliseconds and
// sizes in bytes, as the names of the fields tell.
type idleShown struct {
	Name        string   `json:"name"`
	Interrupted bool     `json:"interrupted"`
	Conns       int      `json:"conns"`
	Silent      int      `json:"silent"`
	Heartbeats  int64    `json:"heartbeats"`
	Evicted     int64    `json:"evicted"`
	Early       int64    `json:"early"`
	Missed      int64    `json:"missed"`
	Twice       int64    `json:"twice"`
	Unpunctual  int64    `json:"heartbeat_came_late"`
	LateP50     float64  `json:"late_p50_ms"`
	LateP99     float64  `json:"late_p99_ms"`
	LateMax     float64  `json:"late_max_ms"`
	BehindMS    float64  `json:"load_behind_max_ms"`
	ElapsedMS   float64  `json:"elapsed_ms"`
	CPUMS       *float64 `json:"cpu_ms"`
	OwnCPUMS    *float64 `json:"cpu_of_the_load_alone_ms"`
	Memory      int64    `json:"memory_bytes"`
}

func (t *idleTally) shown() idleShown {
	l := t.late()
	optional := func(d *time.Duration) *float64 {
		if d == nil {
			return nil
		}
		v := inMillis(*d)
		return &v
	}
	return idleShown{
		Name: t.Name, Interrupted: t.Interrupted, Conns: t.Conns, Silent: t.Silent, Heartbeats: t.Heartbeats,
		Evicted: t.Evicted, Early: t.Early, Missed: t.Missed, Twice: t.Twice, Unpunctual: t.Unpunctual,
		LateP50: inMillis(l.P50), LateP99: inMillis(l.P99), LateMax: inMillis(l.Max),
		BehindMS: inMillis(t.Behind), ElapsedMS: inMillis(t.Elapsed),
		CPUMS: optional(t.CPU), OwnCPUMS: optional(t.OwnCPU), Memory: t.Memory,
	}
}

// An idleReport is what --json prints.
type idleReport struct {
	Go          string      `json:"go"`
	OS          string      `json:"os"`
	Arch        string      `json:"arch"`
	GOMAXPROCS  int         `json:"gomaxprocs"`
	Interrupted bool        `json:"interrupted"`
	Config      idleConfig  `json:"config"`
	TCP         []idleShown `json:"tcp"`
	Memory      []idleShown `json:"in_memory"`
}

func printIdleJSON(w io.Writer, c idleConfig, tcp, memory []*idleTally, interrupted bool) error {
	shown := func(ts []*idleTally) []idleShown {
		out := []idleShown{}
		for _, t := range ts {
			out = append(out, t.shown())
		}
		return out
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(idleReport{
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, GOMAXPROCS: runtime.GOMAXPROCS(0),
		Interrupted: interrupted, Config: c, TCP: shown(tcp), Memory: shown(memory),
	})
}

// idleRow is one figure of every tally.
type idleRow struct {
	name   string
	value  func(*idleTally) (v float64, ok bool)
	format func(float64) string
	// compare says whether a ratio of two such figures means anything.
	compare bool
}

func idleRows() [][]idleRow {
	n := func(name string, get func(*idleTally) int64) idleRow {
		return idleRow{name: name, format: whole, value: func(t *idleTally) (float64, bool) { return float64(get(t)), true }}
	}
	late := func(name string, get func(load.Lateness) time.Duration) idleRow {
		return idleRow{name: name, format: millis, compare: true, value: func(t *idleTally) (float64, bool) {
			return float64(get(t.late())), len(t.Late) > 0
		}}
	}
	return [][]idleRow{
		{
			n("heartbeats", func(t *idleTally) int64 { return t.Heartbeats }),
			n("fell silent", func(t *idleTally) int64 { return int64(t.Silent) }),
			n("evicted", func(t *idleTally) int64 { return t.Evicted }),
			n("early", func(t *idleTally) int64 { return t.Early }),
			n("missed", func(t *idleTally) int64 { return t.Missed }),
			n("twice", func(t *idleTally) int64 { return t.Twice }),
			n("evicted, a heartbeat came late", func(t *idleTally) int64 { return t.Unpunctual }),
		},
		{
			late("late, p50", func(l load.Lateness) time.Duration { return l.P50 }),
			late("late, p99", func(l load.Lateness) time.Duration { return l.P99 }),
			late("late, max", func(l load.Lateness) time.Duration { return l.Max }),
		},
		{
			{name: "CPU time of the heartbeats", format: seconds, compare: true, value: func(t *idleTally) (float64, bool) {
				if t.CPU == nil {
					return 0, false
				}
				return float64(*t.CPU), true
			}},
			{name: "  less the load's own", format: seconds, compare: true, value: func(t *idleTally) (float64, bool) {
				d, ok := t.less()
				return float64(d), ok
			}},
			{name: "  that is, a heartbeat", format: nanos, compare: true, value: func(t *idleTally) (float64, bool) {
				d, ok := t.less()
				return float64(d) / float64(max(t.Heartbeats, 1)), ok
			}},
			{name: "memory a connection", format: inBytes, compare: true, value: func(t *idleTally) (float64, bool) {
				return float64(t.Memory) / float64(max(t.Conns, 1)), t.Conns > 0
			}},
		},
	}
}

func nanos(v float64) string { return fmt.Sprintf("%.0f ns", v) }

// printIdleTable prints the tallies side by side and, where there are two, the
// ratio of the first to the second.
func printIdleTable(w io.Writer, title string, c idleConfig, tallies []*idleTally) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.Style().Format.Header = text.FormatDefault
	header, ratios := table.Row{""}, len(tallies) == 2
	for _, r := range tallies {
		header = append(header, r.Name)
	}
	if ratios {
		header = append(header, "ratio")
	}
	columns := []table.ColumnConfig{{Number: 1}}
	for i := range header[1:] {
		columns = append(columns, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(columns)
	for i, group := range idleRows() {
		if i > 0 {
			t.AppendSeparator()
		}
		for _, row := range group {
			if slices.ContainsFunc(tallies, func(t *idleTally) bool { _, ok := row.value(t); return ok }) {
				t.AppendRow(row.cells(tallies, ratios))
			}
		}
	}

	var b strings.Builder
	fmt.Fprintf(&b, "\n%s, a heartbeat every %v or so, timeout %v, %s fall silent within %v\n",
		title, c.Heartbeat, c.Timeout, percent(c.Silent), c.Duration)
	fmt.Fprintf(&b, "%s %s/%s, %d procs\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	b.WriteString(t.Render())
	b.WriteString("\n")
	for _, r := range tallies {
		if r.Behind > 100*time.Millisecond {
			fmt.Fprintf(&b, "%s: heartbeats came up to %s behind the plan; this machine is too busy for it.\n", r.Name, millis(float64(r.Behind)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (row idleRow) cells(tallies []*idleTally, ratios bool) table.Row {
	cells := table.Row{row.name}
	var values []float64
	for _, t := range tallies {
		v, ok := row.value(t)
		if !ok {
			cells = append(cells, absent)
			continue
		}
		values = append(values, v)
		cells = append(cells, row.format(v))
	}
	if ratios {
		ratio := ""
		if row.compare && len(values) == 2 && values[1] > 0 {
			ratio = fmt.Sprintf("%.2f", values[0]/values[1])
		}
		cells = append(cells, ratio)
	}
	return cells
}
