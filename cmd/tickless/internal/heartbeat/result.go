package heartbeat

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/measure"
)

// A tally is what one side made of a plan, in the form in which a child
// process passes it on.
type tally struct {
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
	Memory      int64          // heap and stacks at the end of the heartbeats, less those before all connections
	Held        int            // connections that it is of
	Late        []time.Duration
}

// add adds the tally of another process.
func (t *tally) add(o *tally) {
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
	t.Held += o.Held
	t.Late = append(t.Late, o.Late...)
}

func (t *tally) late() measure.Lateness {
	h := measure.NewLateHistogram()
	for _, d := range t.Late {
		h.Record(d)
	}
	return h.Lateness()
}

// less returns the CPU time less the load's own, if both are known and they can
// be told apart.
func (t *tally) less() (time.Duration, bool) {
	if t.CPU == nil || t.OwnCPU == nil || t.Interrupted {
		return 0, false
	}
	return *t.CPU - *t.OwnCPU, *t.CPU > *t.OwnCPU
}

// A shown is a tally as --json prints it: durations in milliseconds and
// sizes in bytes, as the names of the fields tell.
type shown struct {
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
	Held        int      `json:"memory_conns"`
}

func (t *tally) shown() shown {
	l := t.late()
	return shown{
		Name: t.Name, Interrupted: t.Interrupted, Conns: t.Conns, Silent: t.Silent, Heartbeats: t.Heartbeats,
		Evicted: t.Evicted, Early: t.Early, Missed: t.Missed, Twice: t.Twice, Unpunctual: t.Unpunctual,
		LateP50: cli.InMillis(l.P50), LateP99: cli.InMillis(l.P99), LateMax: cli.InMillis(l.Max),
		BehindMS: cli.InMillis(t.Behind), ElapsedMS: cli.InMillis(t.Elapsed),
		CPUMS: cli.OptionalMillis(t.CPU), OwnCPUMS: cli.OptionalMillis(t.OwnCPU), Memory: t.Memory, Held: t.Held,
	}
}

// A report is what --json prints.
type report struct {
	cli.Machine
	Interrupted bool    `json:"interrupted"`
	Config      config  `json:"config"`
	TCP         []shown `json:"tcp"`
	Memory      []shown `json:"in_memory"`
}

func shownOf(tallies []*tally) []shown {
	shown := []shown{}
	for _, t := range tallies {
		shown = append(shown, t.shown())
	}
	return shown
}

// figures are the table's rows: what became of the connections, how late
// the evictions were, what it cost.
func figures() [][]cli.Figure[*tally] {
	late := func(name string, get func(measure.Lateness) time.Duration) cli.Figure[*tally] {
		return cli.Figure[*tally]{Name: name, Format: cli.Millis, Compare: true, Value: func(t *tally) (float64, bool) {
			return float64(get(t.late())), len(t.Late) > 0
		}}
	}
	return [][]cli.Figure[*tally]{
		{
			cli.Tally("heartbeats", func(t *tally) int64 { return t.Heartbeats }),
			cli.Tally("fell silent", func(t *tally) int64 { return int64(t.Silent) }),
			cli.Tally("evicted", func(t *tally) int64 { return t.Evicted }),
			cli.Tally("early", func(t *tally) int64 { return t.Early }),
			cli.Tally("missed", func(t *tally) int64 { return t.Missed }),
			cli.Tally("twice", func(t *tally) int64 { return t.Twice }),
			cli.Tally("evicted, a heartbeat came late", func(t *tally) int64 { return t.Unpunctual }),
		},
		{
			late("late, p50", func(l measure.Lateness) time.Duration { return l.P50 }),
			late("late, p99", func(l measure.Lateness) time.Duration { return l.P99 }),
			late("late, max", func(l measure.Lateness) time.Duration { return l.Max }),
		},
		{
			{Name: "CPU time of the heartbeats", Format: cli.Seconds, Compare: true, Value: func(t *tally) (float64, bool) {
				return cli.Optional(t.CPU)
			}},
			{Name: "  less the load's own", Format: cli.Seconds, Compare: true, Value: func(t *tally) (float64, bool) {
				d, ok := t.less()
				return float64(d), ok
			}},
			{Name: "  that is, a heartbeat", Format: cli.Nanos, Compare: true, Value: func(t *tally) (float64, bool) {
				d, ok := t.less()
				return float64(d) / float64(max(t.Heartbeats, 1)), ok
			}},
			{Name: "memory a connection", Format: cli.Bytes, Compare: true, Value: func(t *tally) (float64, bool) {
				return float64(t.Memory) / float64(max(t.Held, 1)), t.Held > 0
			}},
		},
	}
}

// printTable prints the tallies side by side and, where there are two, the
// ratio of the first to the second.
func printTable(w io.Writer, title string, c config, tallies []*tally) error {
	var names []string
	for _, t := range tallies {
		names = append(names, t.Name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s, a heartbeat every %v or so, timeout %v, %s fall silent within %v\n%s\n",
		title, c.Heartbeat, c.Timeout, cli.Percent(c.Silent), c.Duration, cli.ThisMachine())
	b.WriteString(cli.RenderTable(names, tallies, figures(), true))
	for _, t := range tallies {
		if t.Behind > 100*time.Millisecond || t.Unpunctual > 0 {
			fmt.Fprintf(&b, "%s: heartbeats came up to %s behind the plan; this machine is too busy for it.\n", t.Name, cli.Millis(float64(t.Behind)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
