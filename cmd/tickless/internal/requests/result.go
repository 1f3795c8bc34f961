package requests

import (
	"encoding/json"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/measure"
)

// A Result is what one backend made of a plan. A nil pointer is a figure that
// the system or the backend does not tell.
type Result struct {
	Name        string
	Interrupted bool
	Elapsed     time.Duration

	Started int64
	Stopped int64 // Stop returned true
	Fired   int64 // callbacks that ran
	Pending int64 // handed back by Close; only after an interruption
	Lost    int64 // neither stopped nor fired nor pending
	Early   int64 // fired before the caller's own deadline
	Wrong   int64 // ran twice, or after Stop had returned true

	AnsweredTooLate int64         // answers whose Stop returned false
	Behind          time.Duration // the most that the generator ran behind its plan
	Earliest        time.Duration // how early the earliest was
	Late            measure.Lateness

	CPU             *time.Duration // user and system, the load's own included
	OwnCPU          *time.Duration // from OwnCPU, where the caller has it
	ContextSwitches *int64
	Wakeups         *uint64

	Held      *Held // from Weigh, where the caller has it
	Allocated int64 // bytes allocated on the heap during the run
	GCCycles  uint32
	GCPause   time.Duration // all stops of the world together
}

// faults returns an error if timers of our own have not kept their promises, of which so
// many were lost.
func (r Result) faults(lost int64) error {
	return cli.Faults(cli.Fault{Name: "lost", N: lost}, cli.Fault{Name: "early", N: r.Early},
		cli.Fault{Name: "fired twice or after Stop", N: r.Wrong})
}

// MarshalJSON writes durations in milliseconds and sizes in bytes, as the
// names of the fields tell.
func (r Result) MarshalJSON() ([]byte, error) {
	out := struct {
		Name            string   `json:"name"`
		Interrupted     bool     `json:"interrupted"`
		ElapsedMS       float64  `json:"elapsed_ms"`
		Started         int64    `json:"started"`
		Fired           int64    `json:"fired"`
		Stopped         int64    `json:"stopped"`
		Pending         int64    `json:"pending"`
		Lost            int64    `json:"lost"`
		Early           int64    `json:"early"`
		EarliestMS      float64  `json:"earliest_ms"`
		Wrong           int64    `json:"twice_or_after_stop"`
		AnsweredTooLate int64    `json:"answered_too_late"`
		BehindMS        float64  `json:"generator_behind_max_ms"`
		LateP50MS       float64  `json:"late_p50_ms"`
		LateP99MS       float64  `json:"late_p99_ms"`
		LateP999MS      float64  `json:"late_p999_ms"`
		LateMaxMS       float64  `json:"late_max_ms"`
		CPUMS           *float64 `json:"cpu_ms"`
		OwnCPUMS        *float64 `json:"cpu_of_the_load_alone_ms"`
		ContextSwitches *int64   `json:"context_switches"`
		Wakeups         *uint64  `json:"wakeups"`
		Held            *Held    `json:"held"`
		Allocated       int64    `json:"allocated_bytes"`
		GCCycles        uint32   `json:"gc_cycles"`
		GCPauseMS       float64  `json:"gc_pause_ms"`
	}{
		Name: r.Name, Interrupted: r.Interrupted, ElapsedMS: cli.InMillis(r.Elapsed),
		Started: r.Started, Fired: r.Fired, Stopped: r.Stopped, Pending: r.Pending,
		Lost: r.Lost, Early: r.Early, EarliestMS: cli.InMillis(r.Earliest), Wrong: r.Wrong,
		AnsweredTooLate: r.AnsweredTooLate, BehindMS: cli.InMillis(r.Behind),
		LateP50MS: cli.InMillis(r.Late.P50), LateP99MS: cli.InMillis(r.Late.P99), LateP999MS: cli.InMillis(r.Late.P999), LateMaxMS: cli.InMillis(r.Late.Max),
		CPUMS: cli.OptionalMillis(r.CPU), OwnCPUMS: cli.OptionalMillis(r.OwnCPU),
		ContextSwitches: r.ContextSwitches, Wakeups: r.Wakeups,
		Held: r.Held, Allocated: r.Allocated, GCCycles: r.GCCycles, GCPauseMS: cli.InMillis(r.GCPause),
	}
	return json.Marshal(out)
}

// MarshalJSON writes h in the units of [Result.MarshalJSON].
func (h Held) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Timers        int     `json:"timers"`
		HeapBytes     int64   `json:"heap_bytes"`
		BytesPerTimer float64 `json:"heap_bytes_per_timer"`
		FullGCMS      float64 `json:"full_gc_ms"`
	}{h.Timers, h.HeapBytes, h.BytesPerTimer(), cli.InMillis(h.FullGC)})
}
