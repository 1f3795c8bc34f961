package main

import (
	"slices"
	"time"

	"github.com/tickless/tickless/cmd/internal/figures"
)

// A Result is the outcome of one backend's run of a plan.
type Result struct {
	Name        string        `json:"name"`
	Interrupted bool          `json:"interrupted"`
	Elapsed     time.Duration `json:"elapsed_ns"`

	Started               int64 `json:"started"`
	Stopped               int64 `json:"stopped"` // Stop returned true
	Fired                 int64 `json:"fired"`   // callbacks that ran
	Pending               int64 `json:"pending"` // still pending at Close, after an interruption
	Lost                  int64 `json:"lost"`    // neither stopped nor fired nor pending
	Early                 int64 `json:"early"`   // fired before the deadline by the caller's clock
	FiredTwiceOrAfterStop int64 `json:"twice_or_after_stop"`

	MaxBehind time.Duration `json:"behind_ns"` // the most that the generator ran behind its plan
	Late      Lateness      `json:"late"`

	CPU       *time.Duration `json:"cpu_ns,omitempty"` // user and system time, with the load generator's
	Allocated int64          `json:"allocated_bytes"`  // on the heap, during the run
}

// Lateness is how long after their deadlines callbacks ran. The deadline is the time just
// before Start, by the caller's clock, plus the delay.
type Lateness struct {
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

// newLateness returns the percentiles of late. It sorts late.
func newLateness(late []time.Duration) Lateness {
	if len(late) == 0 {
		return Lateness{}
	}
	slices.Sort(late)
	at := func(q float64) time.Duration { return late[int(q*float64(len(late)-1))] }
	return Lateness{P50: at(0.5), P99: at(0.99), Max: at(1)}
}

// faultsError returns an error if a timer was lost, early or fired wrongly.
func (r Result) faultsError() error {
	return figures.FaultsError(figures.Fault{Name: "lost", Count: r.Lost + r.Pending}, figures.Fault{Name: "early", Count: r.Early},
		figures.Fault{Name: "fired twice or after Stop", Count: r.FiredTwiceOrAfterStop})
}
