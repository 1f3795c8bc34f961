package callbacks

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// report is what --json prints.
type report struct {
	cli.Machine
	Config     config  `json:"config"`
	DurationMS int64   `json:"duration_ms"`
	LeaseMS    int64   `json:"lease_ms"`
	Result     *result `json:"result"`
}

// MarshalJSON writes durations in milliseconds, and what cannot be told as null.
func (r *result) MarshalJSON() ([]byte, error) {
	var lost, pending *int64
	if r.Interrupted {
		pending = &r.Missing
	} else {
		lost = &r.Missing
	}
	var takenOver, inStore *int64
	if r.Left != nil {
		n := r.Left.Pending + r.Left.Running + r.Left.Dead
		takenOver, inStore = &r.Left.Crashed, &n
	}
	return json.Marshal(struct {
		Store        string  `json:"store"`
		Interrupted  bool    `json:"interrupted"`
		Scheduled    int64   `json:"scheduled"`
		SchedulingMS float64 `json:"scheduling_ms"`
		Delivered    int64   `json:"delivered"`
		Duplicated   int64   `json:"duplicated"`
		Lost         *int64  `json:"lost"`
		Pending      *int64  `json:"pending"`
		Early        int64   `json:"early"`
		Refused      int64   `json:"wrongly_signed"`
		P50MS        float64 `json:"late_p50_ms"`
		P99MS        float64 `json:"late_p99_ms"`
		MaxMS        float64 `json:"late_max_ms"`
		Rate         float64 `json:"deliveries_per_second"`
		Killed       []kill  `json:"killed"`
		TakenOver    *int64  `json:"leases_taken_over"`
		Left         *int64  `json:"left_in_the_store"`
	}{
		r.Store, r.Interrupted, r.Scheduled, cli.InMillis(r.Scheduling), r.Delivered, r.Duplicated, lost, pending, r.Early,
		r.Refused, cli.InMillis(r.Late.P50), cli.InMillis(r.Late.P99), cli.InMillis(r.Late.Max), r.Rate, r.Killed, takenOver, inStore,
	})
}

// figures are the table's rows.
func figures() [][]cli.Figure[*result] {
	late := func(name string, get func(*result) time.Duration) cli.Figure[*result] {
		return cli.Figure[*result]{Name: name, Format: cli.Millis, Value: func(r *result) (float64, bool) {
			return float64(get(r)), r.Delivered > 0
		}}
	}
	missing := func(name string, interrupted bool) cli.Figure[*result] {
		return cli.Figure[*result]{Name: name, Format: cli.Whole, Value: func(r *result) (float64, bool) {
			return float64(r.Missing), r.Interrupted == interrupted
		}}
	}
	return [][]cli.Figure[*result]{
		{
			cli.Tally("scheduled, acknowledged", func(r *result) int64 { return r.Scheduled }),
			cli.Tally("delivered", func(r *result) int64 { return r.Delivered }),
			missing("lost", false),
			missing("still pending", true),
			{Name: "left in the store", Format: cli.Whole, Value: func(r *result) (float64, bool) {
				if r.Left == nil || r.Interrupted {
					return 0, false
				}
				return float64(r.Left.Pending + r.Left.Running + r.Left.Dead), true
			}},
			cli.Tally("delivered more than once", func(r *result) int64 { return r.Duplicated }),
			cli.Tally("early", func(r *result) int64 { return r.Early }),
			{Name: "wrongly signed", Format: cli.Whole, Value: func(r *result) (float64, bool) {
				return float64(r.Refused), r.Refused > 0
			}},
		},
		{
			cli.Tally("processes killed, as by kill -9", func(r *result) int64 { return int64(len(r.Killed)) }),
			cli.Tally("calls under way when they were", func(r *result) (n int64) {
				for _, k := range r.Killed {
					n += k.Calls
				}
				return n
			}),
			{Name: "leases that ran out", Format: cli.Whole, Value: func(r *result) (float64, bool) {
				if r.Left == nil {
					return 0, false
				}
				return float64(r.Left.Crashed), true
			}},
		},
		{
			late("late, p50", func(r *result) time.Duration { return r.Late.P50 }),
			late("late, p99", func(r *result) time.Duration { return r.Late.P99 }),
			late("late, max", func(r *result) time.Duration { return r.Late.Max }),
		},
		{
			{Name: "scheduling", Format: cli.PerSecond, Value: func(r *result) (float64, bool) {
				return float64(r.Scheduled) / max(r.Scheduling.Seconds(), 1e-9), r.Scheduled > 0
			}},
			{Name: "delivery", Format: cli.PerSecond, Value: func(r *result) (float64, bool) { return r.Rate, r.Rate > 0 }},
		},
	}
}

func printTable(w io.Writer, c config, r *result) error {
	processes := "a worker process"
	if c.Workers > 1 {
		processes = fmt.Sprintf("%d worker processes", c.Workers)
	}
	_, err := fmt.Fprintf(w, "\n%s tasks over %v, HTTP callbacks by %s, a lease of %v\n%s\n%s\n%s",
		cli.Thousands(int64(c.Tasks)), c.Duration, processes, c.Lease, r.Store, cli.ThisMachine(),
		cli.RenderTable([]string{"tickless"}, []*result{r}, figures(), false))
	if err == nil {
		_, err = io.WriteString(w, story(c, r))
	}
	return err
}

// story says in words what was killed, what came of it, and the verdict.
func story(c config, r *result) string {
	var b strings.Builder
	for _, k := range r.Killed {
		what := "with " + calls(k.Calls) + " under way"
		switch {
		case k.Scheduling:
			what = "while it was scheduling; the next one scheduled the rest"
		case c.Workers > 1: // it is not known whose they are
			what = fmt.Sprintf("when the %d processes had %s under way", c.Workers, calls(k.Calls))
		}
		fmt.Fprintf(&b, "Process %d was killed %s.\n", k.Pid, what)
	}
	switch {
	case len(r.Killed) == 0 || r.Left == nil:
	case r.Left.Crashed == 0:
		fmt.Fprintln(&b, "No lease ran out: what was killed had no task.")
	default:
		fmt.Fprintf(&b, "What was killed had tasks that it had not reported: leases of %v that ran out, and whose tasks were given out again: %s.\n",
			c.Lease, cli.Thousands(r.Left.Crashed))
	}
	if !r.Interrupted {
		fmt.Fprintln(&b, verdict(c, r))
	}
	return b.String()
}

func calls(n int64) string {
	switch n {
	case 0:
		return "no call"
	case 1:
		return "1 call"
	}
	return cli.Thousands(n) + " calls"
}

// verdict says whether the promises were kept, and which were not.
func verdict(c config, r *result) string {
	if !r.failed(c) {
		return "Nothing was lost, and nothing came early."
	}
	var wrong []string
	note := func(n int64, what string) {
		if n > 0 {
			wrong = append(wrong, fmt.Sprintf(what, cli.Thousands(n)))
		}
	}
	note(int64(c.Tasks)-r.Scheduled, "tasks not scheduled: %s")
	note(int64(c.Kills-len(r.Killed)), "processes not killed: %s")
	note(r.Missing, "tasks not delivered "+c.Patience.String()+" after the last was due or acknowledged, or the last kill: %s")
	note(r.Early, "tasks that came early: %s")
	note(r.Refused, "calls wrongly signed: %s")
	if r.Left == nil {
		wrong = append(wrong, "the store could not be opened at the end")
	} else {
		note(r.Left.Pending+r.Left.Running, "tasks still to be delivered in the store: %s")
		note(r.Left.Dead, "dead tasks in the store: %s")
	}
	return "FAILED: " + strings.Join(wrong, "; ") + "."
}
