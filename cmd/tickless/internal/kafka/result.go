package kafka

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/measure"
)

// A result is what one side made of a plan. A nil pointer is a figure
// that the system does not tell.
type result struct {
	Name        string
	Config      config // of the run
	Interrupted bool
	Elapsed     time.Duration

	Target, Achieved float64 // requests a second
	Arrived          int64
	Completed        int64
	Expired          int64
	AnsweredTooLate  int64 // of the expired: their answer lost the race
	Lost             int64 // neither completed nor expired nor waiting
	Early            int64 // before their moment
	Wrong            int64 // completed or expired twice

	// What there was of requests in the side at the end: all zero, unless the
	// run was interrupted.
	Waiting, Watched, Timers int

	Behind        time.Duration    // the most that the generator ran behind its plan
	CompletedLate measure.Lateness // against the moment of the answer
	ExpiredLate   measure.Lateness // against the timeout

	CPU       *time.Duration // user and system, the load's own included
	OwnCPU    *time.Duration // of the load alone, where the caller has it
	Peak      int64          // most bytes of the heap's objects, less those before
	Allocated int64
	GCCycles  uint32
	GCPause   time.Duration
}

// What a side has to do to hold a rate.
const (
	heldShare = 0.98                  // of the target that is reached
	heldLate  = 50 * time.Millisecond // 99 of 100 answers and timeouts come in this time
)

// held tells whether the side held the rate of its run.
func (r result) held() bool {
	return r.Achieved >= heldShare*r.Target && r.CompletedLate.P99 <= heldLate && r.ExpiredLate.P99 <= heldLate &&
		r.Lost == 0 && r.Wrong == 0
}

// MarshalJSON writes durations in milliseconds and sizes in bytes, as the names
// of the fields tell.
func (r result) MarshalJSON() ([]byte, error) {
	type late struct {
		P50  float64 `json:"p50_ms"`
		P99  float64 `json:"p99_ms"`
		P999 float64 `json:"p999_ms"`
		Max  float64 `json:"max_ms"`
	}
	of := func(l measure.Lateness) late {
		return late{cli.InMillis(l.P50), cli.InMillis(l.P99), cli.InMillis(l.P999), cli.InMillis(l.Max)}
	}
	return json.Marshal(struct {
		Name            string   `json:"name"`
		Interrupted     bool     `json:"interrupted"`
		Held            bool     `json:"held"`
		Rate            int      `json:"rate"`
		Target          float64  `json:"target_rate"`
		Achieved        float64  `json:"achieved_rate"`
		ElapsedMS       float64  `json:"elapsed_ms"`
		Arrived         int64    `json:"arrived"`
		Completed       int64    `json:"completed"`
		Expired         int64    `json:"expired"`
		AnsweredTooLate int64    `json:"answered_too_late"`
		Lost            int64    `json:"lost"`
		Early           int64    `json:"early"`
		Wrong           int64    `json:"twice"`
		Waiting         int      `json:"waiting"`
		Watched         int      `json:"watched"`
		Timers          int      `json:"timers"`
		BehindMS        float64  `json:"generator_behind_max_ms"`
		CompletedLate   late     `json:"completed_late"`
		ExpiredLate     late     `json:"expired_late"`
		CPUMS           *float64 `json:"cpu_ms"`
		OwnCPUMS        *float64 `json:"cpu_of_the_load_alone_ms"`
		PeakHeap        int64    `json:"heap_peak_bytes"`
		Allocated       int64    `json:"allocated_bytes"`
		GCCycles        uint32   `json:"gc_cycles"`
		GCPauseMS       float64  `json:"gc_pause_ms"`
	}{
		Name: r.Name, Interrupted: r.Interrupted, Held: r.held(), Rate: r.Config.Rate,
		Target: r.Target, Achieved: r.Achieved, ElapsedMS: cli.InMillis(r.Elapsed),
		Arrived: r.Arrived, Completed: r.Completed, Expired: r.Expired, AnsweredTooLate: r.AnsweredTooLate,
		Lost: r.Lost, Early: r.Early, Wrong: r.Wrong, Waiting: r.Waiting, Watched: r.Watched, Timers: r.Timers,
		BehindMS: cli.InMillis(r.Behind), CompletedLate: of(r.CompletedLate), ExpiredLate: of(r.ExpiredLate),
		CPUMS: cli.OptionalMillis(r.CPU), OwnCPUMS: cli.OptionalMillis(r.OwnCPU),
		PeakHeap: r.Peak, Allocated: r.Allocated, GCCycles: r.GCCycles, GCPauseMS: cli.InMillis(r.GCPause),
	})
}

// figures are the table's rows: what became of the requests, how late they
// were, what it cost.
func figures() [][]cli.Figure[result] {
	late := func(name string, count func(result) int64, get func(result) time.Duration) cli.Figure[result] {
		return cli.Figure[result]{Name: name, Format: cli.Millis, Compare: true, Value: func(r result) (float64, bool) {
			return float64(get(r)), count(r) > 0
		}}
	}
	completed := func(r result) int64 { return r.Completed }
	expired := func(r result) int64 { return r.Expired }
	return [][]cli.Figure[result]{
		{
			{Name: "target rate", Format: cli.PerSecond, Value: func(r result) (float64, bool) { return r.Target, true }},
			{Name: "achieved rate", Format: cli.PerSecond, Value: func(r result) (float64, bool) { return r.Achieved, true }},
			cli.Tally("completed", completed),
			cli.Tally("expired", expired),
			cli.Tally("  their answer came too late", func(r result) int64 { return r.AnsweredTooLate }),
			cli.Tally("lost", func(r result) int64 { return r.Lost }),
			cli.Tally("early", func(r result) int64 { return r.Early }),
			cli.Tally("twice", func(r result) int64 { return r.Wrong }),
			cli.Tally("still waiting", func(r result) int64 { return int64(r.Waiting) }),
			cli.Tally("still in lists", func(r result) int64 { return int64(r.Watched) }),
			cli.Tally("timers left", func(r result) int64 { return int64(r.Timers) }),
		},
		{
			late("completion late, p50", completed, func(r result) time.Duration { return r.CompletedLate.P50 }),
			late("completion late, p99", completed, func(r result) time.Duration { return r.CompletedLate.P99 }),
			late("completion late, max", completed, func(r result) time.Duration { return r.CompletedLate.Max }),
			late("expiry late, p50", expired, func(r result) time.Duration { return r.ExpiredLate.P50 }),
			late("expiry late, p99", expired, func(r result) time.Duration { return r.ExpiredLate.P99 }),
			late("expiry late, max", expired, func(r result) time.Duration { return r.ExpiredLate.Max }),
		},
		{
			{Name: "CPU time", Format: cli.Seconds, Compare: true, Value: func(r result) (float64, bool) {
				return cli.Optional(r.CPU)
			}},
			{Name: "CPU time less the load's own", Format: cli.Seconds, Compare: true, Value: func(r result) (float64, bool) {
				return cli.LessOwn(r.CPU, r.OwnCPU, r.Interrupted)
			}},
			{Name: "procs busy", Format: func(v float64) string { return fmt.Sprintf("%.2f", v) }, Value: func(r result) (float64, bool) {
				cpu, ok := cli.Optional(r.CPU)
				return cpu / float64(r.Elapsed), ok
			}},
			{Name: "heap at its peak", Format: cli.Megabytes, Compare: true, Value: func(r result) (float64, bool) { return float64(r.Peak), true }},
			{Name: "allocated a request", Format: cli.Bytes, Compare: true, Value: func(r result) (float64, bool) {
				return float64(r.Allocated) / float64(r.Arrived), r.Arrived >= 1000
			}},
			cli.Tally("GC cycles", func(r result) int64 { return int64(r.GCCycles) }),
			{Name: "GC pauses", Format: cli.Millis, Compare: true, Value: func(r result) (float64, bool) { return float64(r.GCPause), true }},
		},
	}
}

// printTable prints the results side by side and, where there are two
// of one load, the ratio of the first to the second.
func printTable(w io.Writer, c config, results []result, saturated bool) error {
	var names []string
	for _, r := range results {
		names = append(names, r.Name)
	}
	var b strings.Builder
	what := fmt.Sprintf("%s requests/s for %v", cli.Thousands(int64(c.Rate)), c.Duration)
	if saturated {
		what = fmt.Sprintf("the highest rate held for %v", c.Duration)
	}
	fmt.Fprintf(&b, "\n%s, answered after %v (p50) and %v (p75), timeout %v, %d keys of %s, by %s\n%s\n",
		what, c.P50, c.P75, c.Timeout, c.Keys, cli.Thousands(int64(c.KeySpace)), c.Complete, cli.ThisMachine())
	b.WriteString(cli.RenderTable(names, results, figures(), !saturated))
	for _, r := range results {
		switch {
		case saturated && !r.held():
			fmt.Fprintf(&b, "%s does not hold even this rate.\n", r.Name)
		case r.Behind > 100*time.Millisecond:
			fmt.Fprintf(&b, "%s: requests arrived up to %s behind the plan: it does not hold the rate, or the machine is busy otherwise.\n", r.Name, cli.Millis(float64(r.Behind)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
