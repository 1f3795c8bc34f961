package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/load"
)

// purgatoryFlags are the flags of the purgatory's load.
type purgatoryFlags struct {
	config   purgatoryConfig
	saturate bool
	json     bool
}

// cases returns the loads to run: that of the flags, or both of Kafka's.
func (f *purgatoryFlags) cases() []purgatoryConfig {
	if f.config.P50 != 0 {
		return []purgatoryConfig{f.config}
	}
	fast, slow := f.config, f.config
	fast.P50, fast.P75 = 20*time.Millisecond, 60*time.Millisecond
	slow.P50, slow.P75 = 200*time.Millisecond, 400*time.Millisecond
	return []purgatoryConfig{fast, slow}
}

func (f *purgatoryFlags) validate() error {
	if (f.config.P50 == 0) != (f.config.P75 == 0) {
		return errors.New("give both --p50 and --p75, or neither")
	}
	for _, c := range f.cases() {
		if err := c.validate(); err != nil {
			return err
		}
	}
	return nil
}

// newPurgatoryCommand returns the command that puts Kafka's load on package
// purgatory.
func newPurgatoryCommand() *cobra.Command {
	f := purgatoryFlags{config: purgatoryConfig{Rate: 105_000, KeySpace: 100}}
	cmd := &cobra.Command{
		Use:   "purgatory [flags]",
		Short: "Puts Kafka's load of delayed requests on package purgatory",
		Long: `Puts the load of Kafka's own purgatory test on package purgatory, then on
time.AfterFunc with a map under a mutex, and prints one table of both.

Requests arrive as a Poisson process. Each waits for a few keys until it is
answered, after a time drawn from a log-normal distribution given by its median
and its 75th percentile, or until it times out. All is drawn before, and both
sides get the very same load. Without --p50 and --p75 both of Kafka's published
cases are run: 20/60 ms, and 200/400 ms, where half of the requests time out.`,
		Example: `  tickless purgatory                            Kafka's cases at 105,000 requests/s
  tickless purgatory --saturate                 the rate at which each side falls behind
  tickless purgatory --p50 5ms --p75 10ms       answers of other speeds
  tickless purgatory --complete check           each answer asks all that wait for a key
  tickless purgatory --json > result.json       the figures for a program to read`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(); err != nil {
				return usageError{err}
			}
			return runPurgatory(cmd, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var((*count)(&f.config.Rate), "rate", "requests a second; with --saturate the first that is tried")
	flags.DurationVar(&f.config.Duration, "duration", 5*time.Second, "over which they arrive; with --saturate at each rate")
	flags.DurationVar(&f.config.Timeout, "timeout", 200*time.Millisecond, "after which a request expires")
	flags.DurationVar(&f.config.P50, "p50", 0, "median time until a request is answered")
	flags.DurationVar(&f.config.P75, "p75", 0, "75th percentile of the same")
	flags.IntVar(&f.config.Keys, "keys", 3, "keys that a request waits for")
	flags.Var((*count)(&f.config.KeySpace), "key-space", "keys there are")
	flags.StringVar(&f.config.Complete, "complete", purgatoryCompletions[0], "how a request is answered: "+strings.Join(purgatoryCompletions, ", "))
	flags.Uint64Var(&f.config.Seed, "seed", 1, "draws the load")
	flags.BoolVar(&f.saturate, "saturate", false, "find the highest rate that each side holds")
	flags.BoolVar(&f.json, "json", false, "print JSON instead of tables")
	return cmd
}

// purgatorySides are the sides that are compared. One is made when its turn
// comes and forgotten after it, so that none pays for another's memory.
var purgatorySides = []func() purgatorySide{
	func() purgatorySide { return new(ticklessPurgatory) },
	func() purgatorySide { return new(plainPurgatory) },
}

// A purgatoryReport is what --json prints.
type purgatoryReport struct {
	machine
	Saturate    bool                 `json:"saturate"`
	Interrupted bool                 `json:"interrupted"`
	Cases       []purgatoryCaseShown `json:"cases"`
}

// A purgatoryCaseShown is a case and its results. With --saturate those are of
// the highest rate held.
type purgatoryCaseShown struct {
	Config purgatoryConfig   `json:"config"`
	Runs   []purgatoryResult `json:"runs"`
}

func runPurgatory(cmd *cobra.Command, f purgatoryFlags) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	var shown []purgatoryCaseShown
	for _, c := range f.cases() {
		if ctx.Err() != nil {
			break
		}
		var results []purgatoryResult
		var err error
		if f.saturate {
			results, err = saturatePurgatory(ctx, stderr, c)
		} else {
			results, err = comparePurgatory(ctx, stderr, c)
		}
		if err != nil {
			return err
		}
		shown = append(shown, purgatoryCaseShown{c, results})
		if !f.json {
			if err := printPurgatoryTable(stdout, c, results, f.saturate); err != nil {
				return err
			}
		}
	}
	return conclude(cmd, f.json, purgatoryReport{machine: thisMachine(), Saturate: f.saturate, Interrupted: ctx.Err() != nil, Cases: shown})
}

// comparePurgatory runs one load on all sides.
func comparePurgatory(ctx context.Context, stderr io.Writer, c purgatoryConfig) ([]purgatoryResult, error) {
	own, err := purgatoryOwnCPU(ctx, c)
	if err != nil {
		return nil, err
	}
	plan := newPurgatoryPlan(c)
	var results []purgatoryResult
	for i, newSide := range purgatorySides {
		if i > 0 && ctx.Err() != nil {
			break
		}
		side := newSide()
		bar := newProgressBar(stderr, side.Name(), int64(c.count()), requestsOver(c.count(), c.Duration))
		r, err := plan.run(ctx, side, bar.set)
		bar.finish()
		if err != nil {
			return nil, err
		}
		r.OwnCPU = own
		results = append(results, r)
	}
	return results, nil
}

// purgatoryOwnCPU returns about how much CPU time the load takes by itself, on a
// purgatory that costs nothing; nil if that cannot be told. It runs a part of the
// load.
func purgatoryOwnCPU(ctx context.Context, c purgatoryConfig) (*time.Duration, error) {
	scale := load.OwnCPUScale(c.Duration)
	c.Duration = max(c.Duration/scale, time.Second/time.Duration(c.Rate))
	r, err := newPurgatoryPlan(c).run(ctx, new(noPurgatory), nil)
	if err != nil || r.CPU == nil || r.Interrupted {
		return nil, err
	}
	cpu := *r.CPU * scale
	return &cpu, nil
}

// How saturatePurgatory looks for the highest rate: in large steps, up or down,
// until one is held and one is not, then by halving until the two are this close.
// A rate is not held if it is not held twice: machines have bad moments.
const (
	saturateStep  = 1.5
	saturateClose = 1.1
	saturateFirst = 1000
	saturateLast  = maxPurgatoryRate
	saturateTries = 2
)

// saturatePurgatory finds the highest rate that each side holds, and returns its
// results there. A side that does not hold even the lowest that is tried has a
// result that says so.
func saturatePurgatory(ctx context.Context, stderr io.Writer, c purgatoryConfig) ([]purgatoryResult, error) {
	var results []purgatoryResult
	for _, newSide := range purgatorySides {
		var best, worst purgatoryResult // held, not held
		for rate := c.Rate; ctx.Err() == nil; {
			trial := c
			trial.Rate = rate
			if trial.validate() != nil {
				break // more requests than there may be
			}
			var r purgatoryResult
			plan := newPurgatoryPlan(trial)
			for range saturateTries {
				var err error
				if r, err = plan.run(ctx, newSide(), nil); err != nil {
					return nil, err
				}
				if r.held() || r.Interrupted {
					break
				}
			}
			if r.Interrupted {
				break
			}
			verdict := "falls behind"
			if r.held() {
				best, verdict = r, "holds"
			} else {
				worst = r
			}
			fmt.Fprintf(stderr, "%s: %s %s requests/s (%s reached, %s behind, answers %s late at p99)\n", r.Name, verdict,
				thousands(int64(rate)), thousands(int64(r.Achieved)), millis(float64(r.Behind)), millis(float64(r.CompletedLate.P99)))
			lo, hi := best.Config.Rate, worst.Config.Rate
			switch {
			case lo == 0 && rate > saturateFirst:
				rate = max(int(float64(rate)/saturateStep), saturateFirst)
				continue
			case lo == 0:
				results = append(results, worst)
			case hi == 0 && rate < saturateLast:
				rate = min(int(float64(rate)*saturateStep), saturateLast)
				continue
			case hi != 0 && float64(hi) > float64(lo)*saturateClose:
				rate = (lo + hi) / 2
				continue
			}
			break
		}
		if best.Name != "" {
			results = append(results, best)
		}
	}
	return results, nil
}

func (c purgatoryConfig) knownCompletion() bool {
	return slices.Contains(purgatoryCompletions, c.Complete)
}
